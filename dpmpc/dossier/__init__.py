"""A run as one page that a person can read, check and sign: `dpmpc report`."""
