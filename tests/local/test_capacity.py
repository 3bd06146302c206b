"""Capacity: of 98 or 99 records under 128 everything that is written is alike, but for noise, ids and times."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc

PUBLIC: dict[str, Any] = {"x": [-3.0, 3.0], "y": ["0", "1"]}
MASKS = (
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"(?<![\w.])-?\d+(\.\d+(e-?\d+)?|e-?\d+)(?!\w)", "FLOAT"),  # noise, seconds
    (r"[0-9a-f]{16,}", "ID"),  # digests, tokens, salts, random names of runs
    (r"\d{7,}", "BYTES"),  # of memory, and process times
)


def records(folder: Path, first: int) -> str:
    """Two sites, the first with so many records."""
    rng, lines = np.random.default_rng(1), ["site,x,y"]
    for site, n in enumerate((first, 101)):
        lines += [f"s{site},{rng.normal():.3f},{k % 2}" for k in range(n)]
    path = folder / "records.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def run(folder: Path, kind: str, first: int, capacity: tuple[int, int] | None) -> dict[str, Any]:
    """All that a run writes, by file: of text its lines, masked, of the rest its length."""
    out, source = folder / "run", records(folder, first)
    how: dict[str, Any] = {"epsilon": 10.0, "delta": 1e-5, "data_id": "ward", "capacity": capacity}
    if kind == "stats":
        dpmpc.stats(source, ["count", "table(y)", "mean(x)"], owners="site", bounds=PUBLIC, out=out, **how)
    else:
        bounds = folder / "bounds.json"
        bounds.write_text('{"x": [-3, 3], "y": ["0", "1"]}', encoding="utf-8")
        how |= {"iterations": 3, "step": 1.0, "run_id": "ward-1", "evaluate": False, "positive": "1"}
        how |= {"preprocessing": "records"}  # what a survey finds is noise, and as long as it happens to be
        dpmpc.train(out, records=source, target="y", owners_column="site", bounds=str(bounds), **how)
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        if path.is_dir() or path.suffix in (".svg", ".html", ".md", ".txt", ".csv"):  # of answers.json, report.json
            continue
        raw = path.read_bytes()
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            found[path.name] = len(raw)
            continue
        for pattern, name in MASKS:
            text = re.sub(pattern, name, text)
        found[path.name] = sorted(sorted(re.findall(r"[\w.+-]+", line)) for line in text.split("\n"))  # as peers came
    out.rename(folder / f"{kind}-{first}-{capacity is None}")
    return found


@pytest.mark.parametrize("kind", ["train", "stats"])
def test_what_is_written_does_not_say_how_many_records_there_are(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    one, more = (run(tmp_path, kind, n, (128, 128)) for n in (98, 99))
    assert one.keys() == more.keys() and len(one) > 5
    for name, lines in one.items():
        if name != "answers.json":  # whose numbers are noisy: how many digits they have is noise too
            assert lines == more[name], name
    plain = [run(tmp_path, kind, n, None)["plan.json"] for n in (98, 99)]
    assert plain[0] != plain[1], "and without a capacity the comparison finds it"
