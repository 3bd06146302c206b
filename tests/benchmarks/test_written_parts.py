"""Parts of pages that are written from result files: kernels, versions by turns, and two files side by side."""

import json
from pathlib import Path
from typing import Any

from dpmpc.benchmarks.quartiles import Figure
from dpmpc.benchmarks.result_file import Record, Results, write_json
from dpmpc.benchmarks.studies import kernels, programs
from website import measured

MACHINE: dict[str, Any] = {
    "time": "2026-01-02T03:04:05Z", "commit": "abc", "versions": {"python": "3", "numpy": "2", "dpmpc": "0"},
    "system": "x", "processor": "P", "kernels": "C (avx2)", "cores": 2, "memory_bytes": 1 << 30, "load": [1.2, 1, 1],
    "load_after": [0.5, 1, 1],
}  # fmt: skip
WHEN = "On 2026-01-02, commit abc, P, 2 cores, load 1, kernels C (avx2)"


def _written(path: Path, found: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"machine": MACHINE, **found}))
    return path


def test_each_kernel_has_its_ratios_and_the_slow_ones_are_named(tmp_path: Path) -> None:
    families = {"gates": ["ANDs", "sum"], "records": ["hashes"]}
    seconds = {"8": {"ANDs": (1.0, 5.44), "sum": (2.0, 2.0), "hashes": (1.0, 30.4)},
               "512": {"ANDs": (1.0, 28.0), "sum": (2.0, 1.0), "hashes": (1.0, 1.0)}}  # fmt: skip
    path = _written(tmp_path / "k.json", {"repetitions": 7, "families": families, "seconds": seconds})
    said = measured.part("kernels", [path])
    assert said.startswith(f"{WHEN}, medians of 7:") and "rows of 8 / of 512 words" in said
    assert "| gates | ANDs 5.4 / 28; sum 1.0 / 0.5 |\n| records | hashes 30 / 1.0 |" in said
    assert said.endswith("Slower than the twin: sum.")
    seconds["512"]["sum"] = (1.0, 1.0)
    path = _written(path, {"repetitions": 7, "families": families, "seconds": seconds})
    assert measured.part("kernels", [path]).endswith("None is slower than its twin.")


def test_every_family_of_kernels_is_in_the_file() -> None:
    """Its names are those that are timed, in the same order."""
    assert [name for of in kernels.FAMILIES.values() for name, _ in of(8)] == [name for name, _ in kernels.jobs(8)]


def test_a_release_beside_an_older_one(tmp_path: Path) -> None:
    old = [{"total": t, "open": 1e-3, "total less open": t - 1e-3} for t in (2e-3, 3e-3, 5e-3)]
    new = [{"total": t, "open": 5e-4, "total less open": t - 5e-4} for t in (1e-3, 1.5e-3, 2.5e-3)]
    cell = {"against": "71173d3", "d": 122, "m": 100, "disk": "memory"}
    said = measured.part("pooled", [_written(tmp_path / "p.json", {**cell, "old": old, "new": new})])
    assert said.startswith(f"{WHEN}, d = 122, 100 owners, ledgers in memory, 3 turns. A release takes 0.50 of what it")
    assert "barrier is, it takes 0.50:" in said and "| total | 3000 µs | 1500 µs | 0.50 |" in said
    path = _written(tmp_path / "p.json", {**cell, "disk": "temporary folder", "old": old, "new": new})
    assert "ledgers in the folder for temporary files" in measured.part("pooled", [path])


def test_turns_name_the_machine_where_the_file_does(tmp_path: Path) -> None:
    one = {"seconds": 1.0, "cpu": 1.0, "rounds": 2.0, "bytes": 10.0, "memory": 5e7}
    ratios = {"seconds": 1.0, "cpu": 1.0}
    case = {"case": {"count": 10}, "old": one, "new": one, "ratio": ratios, "ratios": {"seconds": [1.0], "cpu": [1.0]}}
    named = _written(tmp_path / "t.json", {"gaussian": case})
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({"gaussian": case}))
    table = programs.table({"gaussian": case})
    assert "| 10 gaussian | 1.00 (1.00) |" in table
    assert measured.part("turns", [named]) == f"{WHEN}:\n\n{table}" and measured.part("turns", [plain]) == table


def _file(path: Path, records: list[Record], **machine: Any) -> Path:
    write_json(Results({**MACHINE, **machine}, "full", tuple(records)), path)
    return path


def _noise(backend: str, parties: int, count: int, rounds: int, sent: float, took: float) -> Record:
    key = {"law": "gaussian", "sampler": "discrete", "backend": backend, "parties": parties, "count": count}
    return Record("noise", key, {"rounds": rounds, "bytes_a_sample": sent, "ands_a_sample": 646},
                  {"draw": Figure(took, took, took, 3)})  # fmt: skip


def _release(dimension: int, rounds: int, took: float, tcp: float) -> Record:
    key = {"backend": "sharing", "parties": 3, "network": "loopback", "dimension": dimension}
    seconds = {"total": Figure(took, took, took, 3), "limit": Figure(tcp, tcp, tcp, 3)}
    return Record("iteration", key, {"rounds": rounds, "noise_bytes_by_party": [1, 2]}, seconds)


def test_two_files_side_by_side(tmp_path: Path) -> None:
    """Counts that differ by group, with what they differ by; times as medians; cells of one file alone."""
    before = [_noise("ot", 2, 122, 12, 800.0, 2.0), _noise("ot", 2, 1000, 12, 780.0, 6.0),
              _noise("sharing", 3, 10, 26, 88.0, 1.0), _noise("sharing", 3, 100, 546, 86.0, 3.0),
              _release(10, 1, 4.0, 1.0), _release(20, 1, 6.0, 1.0), _noise("garbled", 2, 5, 5, 9.0, 1.0)]  # fmt: skip
    after = [_noise("ot", 2, 122, 14, 802.0, 1.0), _noise("ot", 2, 1000, 14, 781.56, 2.0),
             _noise("sharing", 3, 10, 26, 88.0, 1.0), _noise("sharing", 3, 100, 273, 86.0, 1.5),
             _release(10, 2, 2.0, 1.5), _release(20, 2, 2.0, 1.5)]  # fmt: skip
    old = _file(tmp_path / "old.json", before, commit="old")
    said = measured.part("compared", [old, _file(tmp_path / "new.json", after)])
    assert "Before: dpmpc 0, commit old, 2026-01-02." in said and "Now: dpmpc 0, commit abc, 2026-01-02." in said
    assert "6 cells are in both files, 1 in the older one alone, 0 in the newer one alone." in said
    assert "1 cells count the same in all, and of 16 counts 9 are equal." in said
    assert "| noise, `ot`, n = 2 | rounds | 2 | +2 | the check of transfers |" in said
    assert "| noise, `ot`, n = 2 | bytes a sample | 2 | 1.0020 to 1.0025 times | the check of transfers |" in said
    assert "| noise, `sharing`, n = 3 | rounds | 1 | -273 | larger batches |" in said
    assert "| a release, `sharing`, n = 3 | rounds | 2 | +1 | the barrier |" in said
    assert "took 1.50 times as long in the newer file" in said
    assert "| noise, `ot`, n = 2 | 2 | 2.50 | 2.00 | 3.00 |" in said
    assert "| a release, `sharing`, n = 3 | 2 | 2.50 | 2.00 | 3.00 |" in said and "different machines" not in said
    elsewhere = _file(tmp_path / "new.json", after, processor="Q")
    assert "different machines" in measured.part("compared", [old, elsewhere])
    same = measured.part("compared", [old, old])
    assert "7 cells count the same in all" in same and "what is counted" not in same


def test_a_pass_of_a_clusters_workers(tmp_path: Path) -> None:
    one = {"rows": 10**8, "columns": 20, "workers": 1, "pass_s": 102.84, "pass_processor_s": 61.7,
           "bytes_out": 2585454, "bytes_back": 2515072, "worker_MB": 267}  # fmt: skip
    two = {**one, "workers": 2, "pass_s": 143.5, "worker_MB": 273}
    found = {"parquet_GB": 8.0, "partitions": 160, "release_s": 0.0071, "dimension": 21, "workers": [two, one]}
    said = measured.part("cluster", [_written(tmp_path / "c.json", found)])
    assert said.startswith(f"{WHEN}: 100,000,000 records of 20 numbers, in 160 Parquet files of 8.0 GB together. One")
    assert "|  | 1 worker | 2 workers |" in said and "of d = 21, its noise ready, takes 0.0071 s." in said
    assert "| a pass, seconds of the clock | 102.8 | 143.5 |" in said
    assert "| bytes from the owner to workers, a pass | 2,585,454 | 2,585,454 |" in said
