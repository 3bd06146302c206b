"""A package that is not dpmpc's: a law, a backend and a method of learning of its own, each with one entry."""
