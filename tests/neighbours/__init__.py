"""Pairs of tables that differ in one ugly record, for every kind of source: what one record may change."""
