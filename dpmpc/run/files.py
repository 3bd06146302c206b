"""What files lie in the folder of a run, and in those of its stages."""

OWN_LEDGER = "ledger_owners.jsonl"  # of owners whose parties are elsewhere
OWNERS_OPENED = "owners.opened.bin"  # what the owners of a run have seen opened
FIGURES = "figures.json"  # of a model, from a stage after its training

# in a stage's folder, beside its own plan, and the sum that it opened (`once.OPENED`)
WHOLE = "stage.whole.json"  # the plan that it is a stage of
PRESENT = "present.json"  # the owners in what it opened, where some may be missing
