"""Shamir sharing over F_p among many parties: arithmetic engine, dealings, pair keys. Semi-honest."""
