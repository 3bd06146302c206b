"""Who does a program (`dpmpc.circuits.program`): in the clear, on replicated shares inside MPC; and what it costs.

In order of dependency: `lanes` (lanes to words and back), `layout` (who holds and sends what), `executor` (what all
executors share, and what one of them has to say), `clear`, `sharing`, `counting`; then the arithmetic of the
fixed-point circuits (`dpmpc.circuits.fixed`) beside each: `sharing_fixed`, `clear_fixed`, `counting_fixed`.
"""
