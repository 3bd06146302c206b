"""Where a party writes: its ledger, its transcript, the vectors that it opened, which versions met."""

import json
from collections.abc import Mapping
from pathlib import Path

from dpmpc.codec import loads
from dpmpc.folders import matching, write_file


def ledger_path(out: Path, party: int) -> Path:
    return out / f"ledger_{party}.jsonl"


def transcript_path(out: Path, party: int) -> Path:
    return out / f"party_{party}.transcript.jsonl"


def opened_path(out: Path, party: int) -> Path:
    return out / f"party_{party}.opened.bin"


def keep_versions(out: Path, party: int, versions: Mapping[str, str]) -> None:
    """Writes which version of dpmpc each process said that it runs, by name. Public."""
    write_file(out / f"versions_{party}.json", json.dumps(dict(versions), indent=1) + "\n")


def read_versions(out: Path) -> dict[str, str]:
    """What the parties in this folder, or in those of its stages, have written of it; {} for nothing."""
    found = dict[str, str]()
    for path in [*matching(out, "versions_*.json"), *matching(out, "*/versions_*.json")]:
        value = loads(path.read_text(encoding="utf-8"))
        found |= {str(name): str(version) for name, version in value.items()} if isinstance(value, dict) else {}
    return found
