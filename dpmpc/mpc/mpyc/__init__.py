"""MPyC as a backend: between the owners' shares and the opened sum everything is MPyC's own.

In order of dependency: `exchange` (MPyC's connections, each after a greeting), `arithmetic` (MPyC's arrays behind the
interface of the exact samplers' circuits), `fixed` (Box-Muller and Laplace noise on SecFxp), `cost` (what all that
costs), `holder` (a party), `backend` (the registry's entry). Semi-honest, 2t < n. docs/mpyc.md walks through it.
"""
