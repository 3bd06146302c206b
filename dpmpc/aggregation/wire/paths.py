"""Where a party writes: its ledger, its transcript, the vectors that it opened."""

from pathlib import Path


def ledger_path(out: Path, party: int) -> Path:
    return out / f"ledger_{party}.jsonl"


def transcript_path(out: Path, party: int) -> Path:
    return out / f"party_{party}.transcript.jsonl"


def opened_path(out: Path, party: int) -> Path:
    return out / f"party_{party}.opened.bin"
