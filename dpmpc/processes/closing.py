"""Things that are closed where their context ends."""

from typing import Self


class Closing:
    """A context that calls `close` at its end, however it ends."""

    def close(self) -> None:
        """Gives back what is held."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
