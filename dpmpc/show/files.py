"""An outcome as files of a run's folder."""

from pathlib import Path

from dpmpc.folders import write_file
from dpmpc.outcome import Outcome
from dpmpc.show.answers_page import as_html
from dpmpc.show.forms import as_csv, as_json, as_markdown, as_text

FORMS = {
    "answers.txt": as_text,
    "answers.md": as_markdown,
    "answers.csv": as_csv,
    "answers.json": as_json,
    "answers.html": as_html,
}


def write_outcome(outcome: Outcome, folder: Path) -> None:
    """Writes its files, and its numbers in every form if it has any, each whole or not at all and for this user alone;
    the page comes last."""
    for name, content in outcome.files.items():
        write_file(folder / name, content)
    for name, form in FORMS.items() if outcome.told else ():
        write_file(folder / name, form(outcome))
