"""Studies that `dpmpc bench` does not need: how fast, how exact and how well covered it all is, for the pages of docs.
They run from a checkout and are not installed.
"""
