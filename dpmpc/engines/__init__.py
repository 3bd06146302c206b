"""Who evaluates circuits: in the clear, counting only, on replicated shares inside MPC. The interface is
`dpmpc.circuits.engine`."""
