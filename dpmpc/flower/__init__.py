"""Flower apps with a private mean: clients seal shares of their updates to the parties, the server gets the noisy mean.

`prepare` makes the plan and the parties' keys; `private_mod` goes into the ClientApp, `PrivateStrategy` around the
ServerApp's strategy; `ShareParty` is a party on a machine of its own. `prepare_questions`, `private_answers` and `ask`
are the same for questions about clients' records. Flower does not come with the package: sealing,
plans and parties do without it.
"""

from typing import TYPE_CHECKING

from dpmpc.errors import NotInstalledError
from dpmpc.lazy import exports

if TYPE_CHECKING:
    from dpmpc.flower.mod import private_mod
    from dpmpc.flower.party import ShareParty
    from dpmpc.flower.prepared import Prepared, prepare
    from dpmpc.flower.questions import ask, private_answers
    from dpmpc.flower.strategy import PrivateStrategy
    from dpmpc.flower.tables import check_records, prepare_questions
    from dpmpc.flower.update import dimension_of

__all__ = [
    "Prepared",
    "PrivateStrategy",
    "ShareParty",
    "ask",
    "check_records",
    "dimension_of",
    "prepare",
    "prepare_questions",
    "private_answers",
    "private_mod",
]

_HOMES = {
    "Prepared": "prepared",
    "PrivateStrategy": "strategy",
    "ShareParty": "party",
    "ask": "questions",
    "check_records": "tables",
    "dimension_of": "update",
    "prepare": "prepared",
    "prepare_questions": "tables",
    "private_mod": "mod",
    "private_answers": "questions",
}

# Whoever imports the package alone does not import Flower.
__getattr__, __dir__ = exports(__name__, _HOMES, absent=NotInstalledError)
