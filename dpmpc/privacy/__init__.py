"""What a release costs in privacy: sensitivity, calibration, composition, and what the literature's formulas give.

Read in this order: budget (what may be asked), sensitivity, gaussian and laplace (continuous laws), account (adding the
failure probabilities of samplers and of MPC), discrete (the laws on the grid that the tool adds), literature.
The derivations are in docs/privacy.md.
"""
