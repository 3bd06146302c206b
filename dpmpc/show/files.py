"""An outcome as files of a run's folder."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder, write_file
from dpmpc.outcome import Outcome
from dpmpc.show.answers_page import as_html
from dpmpc.show.forms import as_csv, as_json, as_markdown, as_text

FORMS: Mapping[str, Callable[[Outcome], str]] = {
    "answers.txt": partial(as_text, whole=True),  # a file lies where nothing beside it says what was promised
    "answers.md": partial(as_markdown, whole=True),
    "answers.csv": as_csv,
    "answers.json": as_json,
    "answers.html": as_html,
}


_TAKEN = (  # by a run itself: its plan, promises, processes and sums
    "*.bin", "*.jsonl", "*.log", "*.tmp", "plan*.json", "stage.*", "request.json", "report.*", "status_*", "attempt*",
    "verify*", "versions_*", "present.json",
)  # fmt: skip


def check_names(outcome: Outcome) -> None:
    """Errors: UsageError for a file that would lie elsewhere, or in the place of one that a run keeps for itself."""
    for name in outcome.files:
        plain = name == Path(name).name and not name.startswith(".")
        if not plain or any(fnmatchcase(name.lower(), pattern) for pattern in _TAKEN):
            raise UsageError(
                f"a file of an outcome has a name of its own, in the run's folder; got {name!r}; give it another",
                code="path",
            )


def write_outcome(outcome: Outcome, folder: Path) -> None:
    """Writes its files, and its numbers in every form if it has any, each whole or not at all and for this user alone;
    the page comes last. Errors: as `check_names` and `make_folder`, before anything is written."""
    check_names(outcome)
    make_folder(folder, OUT, private=True)
    for name, content in outcome.files.items():
        write_file(folder / name, content)
    for name, form in FORMS.items() if outcome.told else ():
        write_file(folder / name, form(outcome))
