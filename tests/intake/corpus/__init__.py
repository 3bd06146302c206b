"""Files whose right reading is known: cases, and mutations of drawn tables. `python -m tests.intake.corpus`."""
