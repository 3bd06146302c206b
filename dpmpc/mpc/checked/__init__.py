"""Three parties of which any one may do anything: replicated sharing whose ANDs, openings and owners are checked."""
