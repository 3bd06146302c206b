"""Records and an iterate -> vectors; opened means -> a model."""
