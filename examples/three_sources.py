"""One private model of three hospitals that keep their records in three ways: PostgreSQL, Parquet and CSV.

Starts a PostgreSQL server on loopback, makes records, fixes the plan from public figures, holds every owner's records
against the public schema, starts three parties and three owners, each a process of its own as on six machines, and
predicts. Run it with `make examples`.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import duckdb
import numpy as np
import psycopg
from postgres_server import Server, postgres_server

SIZES = (400, 300, 500)
SCHEMA = {
    "columns": [
        {"kind": "number", "name": "age", "low": 0, "high": 120},
        {"kind": "number", "name": "pressure", "low": 60, "high": 220},
        {"kind": "category", "name": "ward", "categories": ["surgery", "intensive care", "general"]},
        {"kind": "category", "name": "stage", "categories": [1, 2, 3]},
    ],
    "target": {"kind": "label", "name": "outcome", "positive": ["yes"], "negative": ["no"]},
}
DPMPC = (sys.executable, "-m", "dpmpc.cli.main")


def records(n: int, seed: int) -> list[dict[str, object]]:
    """Made-up patients; some pressures are missing."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for _ in range(n):
        age, stage = int(rng.integers(18, 95)), int(rng.integers(1, 4))
        pressure = None if rng.random() < 0.03 else round(float(rng.normal(110 + 0.4 * age, 12)), 1)
        ill = rng.random() < 1 / (1 + np.exp(-(0.06 * (age - 55) + 0.8 * (stage - 2))))
        ward = str(rng.choice(["surgery", "intensive care", "general"]))
        rows.append({"age": age, "pressure": pressure, "ward": ward, "stage": stage, "outcome": "yes" if ill else "no"})
    return rows


def into_postgres(server: Server, rows: list[dict[str, object]]) -> None:
    """The first owner's table: its own types, its own order of columns."""
    os.environ.update(server.environment)
    with psycopg.connect(server.url) as database:
        database.execute("CREATE TABLE patients (outcome text, ward text, age int, stage numeric, pressure float8)")
        with database.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO patients VALUES (%(outcome)s, %(ward)s, %(age)s, %(stage)s, %(pressure)s)", rows
            )


def into_files(folder: Path, second: list[dict[str, object]], third: list[dict[str, object]]) -> None:
    """The second owner's Parquet file, and the third's CSV: columns turned round, stages 1.0, 2.0, 3.0."""
    (folder / "second.json").write_text("\n".join(map(json.dumps, second)))
    duckdb.sql(f"COPY (FROM '{folder}/second.json') TO '{folder}/second.parquet'")
    names = list(third[0])[::-1]
    with (folder / "third.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(names)
        for row in third:
            row = {**row, "stage": f"{row['stage']}.0"}
            writer.writerow(["" if row[name] is None else row[name] for name in names])


def dpmpc(*arguments: object) -> None:
    """Runs a command and shows it."""
    print("$ dpmpc", *(f"'{a}'" if " " in str(a) else a for a in arguments), flush=True)
    subprocess.run([*DPMPC, *map(str, arguments)], check=True)


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpmpc-example-")))
        server = stack.enter_context(postgres_server())
        into_postgres(server, records(SIZES[0], 1))
        into_files(folder, records(SIZES[1], 2), records(SIZES[2], 3))
        schema = folder / "schema.json"
        schema.write_text(json.dumps(SCHEMA, indent=2))
        sources = [
            ("--database", server.url, "--sql", "SELECT * FROM patients"),
            ("--records", folder / "second.parquet"),
            ("--csv", folder / "third.csv"),
        ]
        for source in sources:
            dpmpc("check", "--schema", schema, *source)
        sizes = ",".join(map(str, SIZES))
        public = ("--schema", schema, "--owner-sizes", sizes, "--weights", "size", "-M", 3)
        spent = ("--epsilon", 2, "--delta", "1e-5", "--iterations", 40)
        dpmpc("train", *public, *spent, "--plan-only", "--out", folder / "plan")
        plan = folder / "plan" / "plan.json"
        host = f"127.1.{os.getpid() % 250}.1"  # a loopback host that nothing else uses
        parties = [part for i in range(3) for part in ("-P", f"{host}:{11365 + i}")]
        common = ("train", "--plan", plan, *parties, "--wait", 600)
        commands = [(*common, "-I", i, "--out", folder / f"party{i}") for i in range(3)]
        commands += [
            (*common, "-I", f"owner{j}", *source, "--out", folder / f"owner{j}") for j, source in enumerate(sources)
        ]
        processes = [subprocess.Popen([*DPMPC, *map(str, command)]) for command in commands]
        try:
            codes = [process.wait() for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(codes):
            raise SystemExit(f"a process failed: exit codes {codes}")
        models = [np.load(folder / f"owner{j}" / "model.npz")["theta"] for j in range(3)]
        assert all(np.array_equal(models[0], model) for model in models), "all owners have the same model"
        print("three owners, one model:", np.round(models[0], 3))
        for source in sources:
            dpmpc("predict", folder / "owner0", *source, "--out", folder / "predictions.parquet")


if __name__ == "__main__":
    main()
