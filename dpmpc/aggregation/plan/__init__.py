"""What is fixed before a run: the plan, what follows from it, what it promises, and whose limits it keeps."""
