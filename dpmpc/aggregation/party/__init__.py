"""A party's end of a run: shares in, one release after another, sums out; and how it resumes."""
