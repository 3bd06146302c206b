"""What is computed inside MPC, and nothing else. Imports NumPy, gmpy2, mpmath and the standard library; the engine is
an argument.

In order of dependency: `engine` (the interface), `heap` (adding up many bits), `adders`, `selection` (one-hot, table
look-up, multiplexer, biased bits, comparison), `alias` (tables for a small law), `gaussian` and `laplace` (the exact
discrete samplers), `convert` (bits to field shares); then fixed point: `fixed` (its interface, bits to numbers, a
floating-like uniform), `approximation` (public tables), `uniform_function`, `box_muller`, `log_laplace`, `accuracy`
(the error bound).
"""
