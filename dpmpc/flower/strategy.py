"""The server's side of a Flower run: a strategy around the user's own, which gets the noisy mean, not the replies."""

import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.guarantee import Promise, promise_of
from dpmpc.aggregation.plan.here import Here, ServerKeywords
from dpmpc.errors import UsageError
from dpmpc.flower.courier import Courier
from dpmpc.flower.messages import asking, read_replies
from dpmpc.flower.places import Places
from dpmpc.flower.prepared import Prepared, read_prepared
from dpmpc.flower.update import dimension_of, is_floating, moved, numpy_arrays
from dpmpc.flower.words import RECORD, needs_flower
from dpmpc.settings import keywords

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Result, Strategy
except ImportError as error:
    raise needs_flower(error) from None

LOG = logging.getLogger("flwr")
EVALUATED = "clients evaluated the model and sent what they measured in the clear: outside the guarantee"


class PrivateStrategy(Strategy):
    """A strategy whose `strategy` sees, each round, one reply: the model moved by the noisy mean of clients' changes.

        strategy = PrivateStrategy(FedAvg(fraction_train=0.5), "private")
        result = strategy.start(grid, initial_arrays, num_rounds=10)

    Sampling, messages, model and optimizer are the inner strategy's: any that needs no more than the mean (FedAvg,
    FedAvgM, FedProx, FedAdam, FedYogi, FedAdagrad); one that compares clients' updates has one to compare. A round in
    which too few answer moves nothing and spends nothing, and its release is lost: clients seal once for each.

    Guarantees: those of the plan, for everything that `start` releases; each round is a release, whoever was sampled:
    nothing is gained from sampling, which the server sees. Metrics do not leave the clients.
    """

    @keywords(Here)
    def __init__(
        self,
        strategy: Strategy,
        prepared: Prepared | Path | str,
        *,
        addresses: list[str] | None = None,
        keys: Path | str | None = None,
        budget: tuple[float, float] | None = None,
        evaluate: bool = False,
        **own: Unpack[ServerKeywords],
    ) -> None:
        """`prepared`: the folder that `prepare` wrote, or its flower.json. `addresses`, `tls`: where the parties listen
        and the folder with this server's certificate (`owners`), as of `dpmpc.Owner`; without them the parties are
        processes of this machine, for study, with the private keys in the folder `keys` (by default that of
        `prepared`). `out`: a new folder for report.json and, of parties here, ledgers and transcripts; of parties
        elsewhere it may hold the report of the same run, which is carried on. `budget`: (epsilon, delta) of all runs on
        this data whose ledgers are beside it. `evaluate`: whether clients evaluate,
        outside the guarantee. Errors: UsageError."""
        super().__init__()
        self.strategy, self._prepared, self._evaluate = strategy, read_prepared(prepared), evaluate
        self._places = Places.of(prepared, self._prepared, keys, budget, addresses, own)
        self._courier: Courier | None = None
        self._model = ArrayRecord()
        self._past: dict[int, tuple[Floats, Release]] = {}  # what the run had opened before it was interrupted
        self._first = 0  # the release that it goes on with
        self._template: Message | None = None  # of a reply, in a round that was made before
        self._owners: dict[int, int] = {}  # by node: the number that it is offered
        self._numbers: dict[int, int] = {}  # by node: the number that it has answered with
        self._presence: dict[int, Presence] = {}
        self._seconds: list[float] = []  # of each release, from the replies to the mean
        self._report: dict[str, Any] = {}

    @property
    def guarantee(self) -> Promise:
        """What all planned rounds together keep."""
        return promise_of(self._prepared.plan)

    # -- Flower's interface ------------------------------------------------------------------------------------------
    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, **settings: Any) -> Result:
        """As of every strategy; connects with the parties before the first round, ends with them after the last, and
        writes report.json. With parties elsewhere a run that was interrupted is carried on by the same call, with the
        same arguments: the inner strategy is given again what was opened, and nobody is asked for it. Errors:
        UsageError for a model or a number of rounds that the plan is not for; PeerError when a party leaves."""
        plan = self._prepared.plan
        if (d := dimension_of(initial_arrays)) != self._prepared.model_dimension:
            raise UsageError(
                f"the plan is for models of {self._prepared.model_dimension} numbers; this one has {d}", code="shape"
            )
        if num_rounds > plan.releases:
            raise UsageError(
                f"the plan has {plan.releases} releases, one a round; {num_rounds} rounds were asked for; plan more",
                code="plan",
            )
        with self._places.courier() as courier:
            self._courier, self._past = courier, courier.past
            self._first = courier.next
            if self._first:
                LOG.info("the run goes on with round %d; %d were opened before", self._first + 1, len(self._past))
            try:
                return super().start(grid, initial_arrays, num_rounds, **settings)
            finally:
                self._report = self._made(courier)
                self._courier = None
                self._places.write(self._report)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The inner strategy's messages, each with what its client needs to know."""
        self._model = arrays
        courier, plan = self._connected(), self._prepared.plan
        if server_round <= self._first:  # a round is a release: this one was made before
            asked_before = list(self.strategy.configure_train(server_round, arrays, config, grid))
            self._template = asked_before[0] if asked_before else None
            return []
        if courier.next >= plan.releases:
            LOG.error("round %d asks nobody: all %d releases are made or lost; plan more", server_round, plan.releases)
            return []
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        for message in messages:
            node = message.metadata.dst_node_id
            offered = self._owners.setdefault(node, len(self._owners))
            asked = asking(self._prepared, courier, offered, self._numbers.get(node))
            content = {key: record for key, record in message.content.items()}
            message.content = RecordDict({**content, RECORD: asked})
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the inner strategy makes of the noisy mean; (None, None) where too few clients answered."""
        courier, plan = self._connected(), self._prepared.plan
        if server_round <= self._first:
            return self._again(server_round)
        if courier.next >= plan.releases:
            return None, None
        found = read_replies(self._prepared, replies, courier.next, self._numbers)
        self._numbers |= found.numbers
        sealed, answer = found.sealed, found.answer
        for problem in found.problems:
            LOG.warning("a client's reply is left out: %s", problem)
        if answer is None or len(sealed) < plan.fewest:
            LOG.error(
                "round %d moves nothing and spends nothing: a release needs %d of %d owners, %d answered; they seal no "
                "second time, so release %d is lost",
                server_round, plan.fewest, plan.owners, len(sealed), courier.next,
            )  # fmt: skip
            courier.skip()
            return None, None
        begin = time.perf_counter()
        mean, release = courier.deliver(sealed)
        self._seconds.append(time.perf_counter() - begin)
        return self._stepped(server_round, mean, release, answer)

    def _again(self, server_round: int) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """A round that was made before the run was interrupted; nothing moves where its release was lost."""
        before, template = self._past.get(server_round - 1), self._template
        if before is None or template is None:
            LOG.info("round %d was lost before the run was interrupted", server_round)
            return None, None
        return self._stepped(server_round, *before, Message(RecordDict(), reply_to=template))

    def _stepped(
        self, server_round: int, mean: Floats, release: Release, answer: Message
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the inner strategy makes of one reply, `answer` with the model moved by the mean."""
        self._presence[release.number] = release.present or ()
        arrays = {name: Array(array) for name, array in moved(numpy_arrays(self._model), mean).items()}
        answer.content = RecordDict(
            {
                getattr(self.strategy, "arrayrecord_key", "arrays"): ArrayRecord(arrays),
                "metrics": MetricRecord({getattr(self.strategy, "weighted_by_key", "num-examples"): 1}),
            }
        )
        LOG.info("round %d: the noisy mean of %d owners", server_round, len(self._presence[release.number]))
        made, metrics = self.strategy.aggregate_train(server_round, [answer])
        return None if made is None else self._kept_kinds(made), metrics

    def _kept_kinds(self, made: ArrayRecord) -> ArrayRecord:
        """The new model with the arrays that are no floating-point numbers as the old one has them: strategies make
        fractions of them, and a plan's dimension does not count them."""
        return ArrayRecord(
            {name: array if is_floating(self._model[name]) else self._model[name] for name, array in made.items()}
        )

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """No messages, unless evaluation by clients was allowed."""
        return self.strategy.configure_evaluate(server_round, arrays, config, grid) if self._evaluate else []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The inner strategy's."""
        return self.strategy.aggregate_evaluate(server_round, replies) if self._evaluate else None

    def summary(self) -> None:
        """Logs the promise, and the inner strategy's summary."""
        LOG.info("\t├──> %s", self.guarantee.sentence)
        self.strategy.summary()

    # -- replies -----------------------------------------------------------------------------------------------------
    def _connected(self) -> Courier:
        if self._courier is None:
            raise UsageError("rounds are made within start; none has begun; call start")
        return self._courier

    # -- report ------------------------------------------------------------------------------------------------------
    def report(self) -> dict[str, Any]:
        """The promise and everything it rests on, rounds, who was there, cost, warnings: JSON values; report.json."""
        return self._made(self._courier) if self._courier is not None else self._report

    def _made(self, courier: Courier) -> dict[str, Any]:
        about = {"strategy": type(self.strategy).__name__, "seconds": self._seconds}
        return self._places.report(courier, about, self._presence, [EVALUATED] if self._evaluate else [])
