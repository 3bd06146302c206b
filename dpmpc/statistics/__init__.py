"""Counts, tables, moments, quantiles and figures of models over the records of all owners, with one copy of noise."""
