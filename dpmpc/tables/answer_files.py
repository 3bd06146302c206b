"""Where answers to questions lie in the folder of a run."""

from dpmpc.statistics.study import QUESTIONS

ANSWERS = "answers.html"
ASKED_FIRST = f"{QUESTIONS}/{ANSWERS}"  # of a run that trained after them
