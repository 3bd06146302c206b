"""Kinds of questions, one file each, or a few that share their sums: entries of `kind.QUESTION_KINDS`."""
