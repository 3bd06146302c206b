"""The model at a party: it opened every sum itself, so it makes the model from them as every owner does; and the
figures of a model at every process of a run that evaluated it. Public."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.party.resume import standing
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.aggregation.wire.paths import opened_path
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.codec import loads
from dpmpc.folders import write_file
from dpmpc.learning.learner import Learner
from dpmpc.learning.method import Learning
from dpmpc.learning.model import with_figures, write_model
from dpmpc.records import Dataset, Schema
from dpmpc.records.blocks import in_memory
from dpmpc.runs.evaluating import section
from dpmpc.runs.figure_lines import FIGURES
from dpmpc.runs.report import add_figures, read_report, write_report
from dpmpc.runs.resume import presence_anywhere
from dpmpc.runs.stages import MINE, OPENED, PRESENT
from dpmpc.runs.stats import statistics_of
from dpmpc.runs.surveyed_away import found_nothing
from dpmpc.statistics.evaluated import figures_of
from dpmpc.statistics.held_out import EVALUATION, Evaluated
from dpmpc.statistics.study import QUESTIONS
from dpmpc.statistics.tables import STEP, Tables


def deliver_answers(plan: Plan, out: Path, index: int) -> bool:
    """The same for the answers of a finished run of questions."""
    if not isinstance(plan.source, Tables) or not standing(plan, out, index).over:
        return False
    opened = read_opened(opened_path(out, index), plan.dimension)
    if not opened:
        return False
    statistics_of(plan, opened[max(opened)]).write(out)
    return True


def keep_answers(plan: Plan, total: Ints, folder: Path) -> None:
    """Writes the answers of a stage of questions into its folder, when it has opened this."""
    if isinstance(plan.source, Tables) and folder.name == QUESTIONS:
        found = statistics_of(plan, total)
        alone = f"{found.guarantee}; of this release alone, which is a part of what the run keeps in all"
        replace(found, guarantee=alone).write(folder)


def deliver_figures(plan: Plan, out: Path) -> None:
    """Writes the figures of the model into `out`, after the evaluation of a plan that has one: figures.json, the
    model's file, and the report where there is one. Post-processing of what was opened; again is the same."""
    if not isinstance(plan.source, Evaluated) or not plan.source.held:
        return
    folder = out / EVALUATION
    made, present = Plan.read(folder / MINE), loads((folder / PRESENT).read_text(encoding="utf-8"))
    assert isinstance(made.source, Tables)
    total = np.load(folder / OPENED, allow_pickle=False)
    sizes = [made.sizes[j] for j in present]
    figures = figures_of(made.source, total / STEP, noise_of(made) / STEP, sizes)
    found: dict[str, Any] = {
        "run": plan.run_id,
        "owner_sizes": list(plan.sizes),
        "figures": figures.to_json(),
        "evaluation": section(made),
        "warnings": list(figures.warnings),
    }
    write_file(out / FIGURES, json.dumps(found, indent=2, allow_nan=False) + "\n")
    if (out / "model.npz").exists():
        with_figures(out / "model.npz", found["figures"])
    if (out / "report.json").exists():
        report = read_report(out)
        if report["figures"] is None:
            add_figures(report, figures)
        report["evaluation"] = found["evaluation"]
        write_report(out / "report.json", report)


def deliver_model(plan: Plan, out: Path, index: int) -> bool:
    """Whether `out` has got model.npz, the same that every owner writes: of a finished run of training with a schema.
    Post-processing of what party `index` opened. A party without which the others finished has not opened all of it,
    and gets none."""
    if not isinstance(plan.source, Learning) or plan.schema is None or not standing(plan, out, index).over:
        return False
    schema = Schema.from_json(plan.schema)
    opened = read_opened(opened_path(out, index), plan.dimension)
    if not opened:
        return False
    nothing = in_memory(np.empty((0, len(schema.feature_names))), np.empty(0))
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    learner = Learner(plan.learning, plan.releases, nothing, (0,), noise)
    present = presence_anywhere(out, plan) if plan.names_owners else {}
    for release in sorted(opened):
        learner.apply(decode(plan, opened[release], present.get(release)))
    data = Dataset(plan.data, schema, nothing, 0, left_out=found_nothing(out, schema))
    write_model(out / "model.npz", learner.model, data, plan.run_id, plan.learning.weights)
    return True
