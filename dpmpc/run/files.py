"""What files lie in the folder of a run, and in those of its stages."""

OWN_LEDGER = "ledger_owners.jsonl"  # of owners whose parties are elsewhere
FIGURES = "figures.json"  # of a model, from a stage after its training

# in a stage's folder
MINE = "stage.json"  # its own plan
WHOLE = "stage.whole.json"  # the plan that it is a stage of
SETTLED = "stage.after.json"  # the plan that it led to: last, from now on it is over
PRESENT = "present.json"  # the owners in what it opened, where some may be missing
