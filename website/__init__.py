"""What `make docs` adds to the pages under docs/: generated reference, examples, files from outside of docs/."""
