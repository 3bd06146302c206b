"""Who evaluates circuits: in the clear, counting only, on replicated shares inside MPC.

The interface of the bit engines `clear`, `counting` and `sharing` is `dpmpc.circuits.engine`; that of their fixed-point
companions `clear_fixed`, `counting_fixed` and `fixed` is `dpmpc.circuits.fixed`.
"""
