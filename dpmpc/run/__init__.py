"""How a plan is executed: its releases opened and kept, its stages one after another, what it spends reserved, and how
it goes on after it was interrupted. Local and over machines alike."""
