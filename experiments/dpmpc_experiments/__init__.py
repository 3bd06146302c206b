"""The papers' experiments: every method in the clear at any number of owners, every figure, every printed number.

Read in this order: `records` (data, owners, metrics), `noise` (sums of many owners' noise in one draw), `descent` and
`local` (gradient descent by all, and by each owner alone), `methods` (one module each), `task` and `runner` (what is
run, in processes, resumable), one module per experiment, `figures`, `report`.

Noise here comes from NumPy generators with recorded seeds: these are simulations on public data and protect nothing.
"""
