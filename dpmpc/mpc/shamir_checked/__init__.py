"""Shamir sharing over F_p among many parties of whom t may do anything: noise and openings are checked."""
