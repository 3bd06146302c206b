"""A law -> shares of one noise vector a release."""
