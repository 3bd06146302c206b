"""The end of a run whose releases are all made, while whoever has them goes on."""

import threading
from types import TracebackType

from dpmpc.aggregation.owner.aggregator import Aggregator


class Ending:
    """The aggregator takes leave of its parties in a thread of its own for as long as this context is open. At the end
    of the context they are gone, and what failed is raised; an error within ends them at once."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator, self._failed = aggregator, list[BaseException]()
        self._thread = threading.Thread(target=self._part, name="dpmpc ending", daemon=True)

    def _part(self) -> None:
        try:
            self._aggregator.costs()
            self._aggregator.session.finish()
        except BaseException as error:  # noqa: BLE001  (of any type: it is raised where it is waited for)
            self._failed.append(error)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._thread.join()
                error = self._failed[0] if self._failed else None
        except BaseException as interrupt:
            error = interrupt
            raise
        finally:
            self._aggregator.abandon(error)
        if kind is None and error is not None:
            raise error
