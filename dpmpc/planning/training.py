"""From what was asked and what is public about the records to the plan of a run."""

import math
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from dpmpc.aggregation.plan.guarantee import noise_costs
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import noise_of, stage_plan
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import BALANCED, parsed
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Learning
from dpmpc.learning.naming import check_nothing_named, words_first
from dpmpc.learning.settings import Descent
from dpmpc.learning.survey_columns import Draft, leaves_open, survey_of
from dpmpc.learning.survey_words import read_words
from dpmpc.learning.task import TASKS, modelled
from dpmpc.planning.request import Request
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.sensitivity import weights_for
from dpmpc.records import Dataset, Partition, Schema
from dpmpc.records.origins import Bounds
from dpmpc.settings import values_of

if TYPE_CHECKING:
    from dpmpc.planning.adviser import Advice, Circumstances

Ahead = Callable[[Plan], object]  # is told of a plan that parties will soon need to have worked out
LOUDEST = 0.2  # of the records: with more noise than this in a count a survey finds nothing


def _nothing(plan: Plan) -> None:
    """The `Ahead` of a plan that no party here needs."""


@dataclass(frozen=True)
class Facts:
    """What is public about the data: shape, task, who holds how many records, where the scaling bounds came from.

    `schema`: what maps the records, from which all but the sizes follow; None for made-up facts.
    """

    name: str
    task: str
    dimension: int
    sizes: tuple[int, ...]
    bounds: Bounds
    schema: dict[str, Any] | None = None
    before: tuple[Mechanism, ...] = ()  # what the run has released already
    classes: int = 2
    part: str = ""  # of the data, that is trained on


def facts_of(dataset: Dataset, split: Partition) -> Facts:
    """What the plan needs to know of the data."""
    return facts_of_schema(dataset.name, dataset.schema, tuple(int(size) for size in split.sizes))


def facts_without_records(request: Request) -> Facts:
    """What the request's schema and sizes say, where it names no records. Errors: it is no schema."""
    assert request.schema is not None and request.owner_sizes is not None
    schema = modelled(Schema.read(Path(request.schema)).on(request.basis), request.task)
    return facts_of_schema(request.data_id or "records", schema, request.owner_sizes)


def facts_of_schema(name: str, schema: Schema, sizes: tuple[int, ...], before: tuple[Mechanism, ...] = ()) -> Facts:
    """What a schema and the owners' sizes say; `before`: what the run has released already."""
    return Facts(
        name, schema.task, len(schema.feature_names), sizes, schema.bounds, schema.to_json(), before, schema.classes
    )


def settled(request: Request, facts: Facts) -> tuple[Request, "Advice | None"]:
    """The request with everything chosen that a plan needs, and the advice that was taken, if any. A function of the
    request and of public facts. A task that nothing rehearses is not advised on. To say what would be chosen changes
    nothing else: settling again what was settled, or any part of it beside what was said, gives the same."""
    if not request.advised or not TASKS[facts.task].rehearsed:
        return _by_rule(_plain(request, facts), facts), None
    request = replace(request, weights=weights_for(request.weights, facts.sizes))
    from dpmpc.planning.adviser import advise  # which rehearses, with SciPy

    advice = advise(replace(_circumstances(request, facts), method=request.method))
    choice = advice.choice
    return replace(
        request,
        method=choice.method,
        iterations=choice.iterations,
        step=choice.step,
        momentum=choice.momentum,
        lam=choice.lam,
        average=request.average or choice.average,
    ), advice


def _plain(request: Request, facts: Facts) -> Request:
    """The request with what no advice is needed for."""
    method = request.method or DEFAULT_METHOD
    average = request.average or ("tail" if METHODS[method].repeats else "none")
    weights = weights_for(request.weights, facts.sizes)
    return replace(request, method=method, average=average, weights=weights)


def _by_rule(request: Request, facts: Facts) -> Request:
    """The request with the length and lam that the adviser's rule has for what nothing rehearses: descents of softmax
    regression, and lam of output perturbation. Where noise is no budget's, as it was."""
    if request.scale is not None or request.calibration != "tight":
        return request
    assert request.weights is not None and request.method is not None
    if request.advised:
        from dpmpc.planning.adviser import plain_descent

        known = _circumstances(request, facts)
        how = plain_descent(known, facts.task, request.weights, facts.classes)
        return replace(request, **how._asdict())
    law = request.noise_law
    free = request.lam is None and METHODS[request.method].lam_moves and TASKS[facts.task].rehearsed
    if free and (request.delta or law.pure):
        from dpmpc.planning.adviser import regularisation

        known = replace(_circumstances(request, facts), noise=law.name)
        return replace(request, lam=regularisation(known, request.method, request.weights))
    return request


def expectation(request: Request, facts: Facts) -> "Advice | None":
    """What the adviser expects of a run of one release that was asked for, with its warnings; the plan is as without.
    None where nothing rehearses it: the task, many features (functional), noise that no budget set."""
    method, law = request.learning_method, request.noise_law
    if (
        method.repeats
        or not (method.may_be_pure or law.by_mu)
        or not TASKS[facts.task].rehearsed
        or request.scale is not None
        or request.calibration != "tight"
    ):
        return None
    from dpmpc.learning.rehearsal import Rehearsed
    from dpmpc.planning.adviser import rehearsed

    if not isinstance(method, Rehearsed):
        return None
    known = _circumstances(request, facts)
    advice = rehearsed(replace(known, method=method.name, noise=law.name, iterations=None, step=None))
    return None if advice is None else replace(advice, followed=False)


def _circumstances(request: Request, facts: Facts) -> "Circumstances":
    from dpmpc.planning.adviser import Circumstances

    return Circumstances(
        owners=len(facts.sizes),
        smallest=min(facts.sizes),
        records=sum(facts.sizes),
        dimension=facts.dimension,
        epsilon=request.epsilon,
        delta=request.delta or None,
        task="ridge" if facts.task == "ridge" else "logistic",
        lam=request.lam,
        momentum=request.momentum,
        iterations=request.iterations,
        step=request.step,
        residual_clip=request.residual_clip,
        weights=weights_for(request.weights, facts.sizes),
        neighbours=cast(Literal["record", "presence", "person", "owner"], request.neighbours),
        persons=Persons(request.person_rows, request.person_owners or len(facts.sizes)),
        spent=math.fsum(spending_of(mechanism).mu2 for mechanism in facts.before),
    )


def plan_of(request: Request, facts: Facts, ahead: Ahead = _nothing, *, chosen: bool = False) -> Plan:
    """The plan. Errors: as `Plan`, and where its promise cannot be kept. `ahead`: gets the plan before anything is
    derived from it. `chosen`: whether the request is `settled` already, which rehearses."""
    check_nothing_named(request.named, request.spell)
    plan, _ = _stated(request, facts, advised=not chosen)
    ahead(plan)
    _ = plan.derived
    return plan


def _stated(request: Request, facts: Facts, *, advised: bool = True) -> "tuple[Plan, Advice | None]":
    """The plan, from which nothing has been derived, and the advice that was taken. `advised`: whether how it learns
    matters. Errors: as `Plan`, and one record."""
    if sum(facts.sizes) < 2:
        raise UsageError(
            f"a model is of several records; {facts.name or 'the plan'} has one; add records", code="enough"
        )
    request, advice = settled(request, facts) if advised else (_plain(request, facts), None)
    assert request.method is not None and request.average is not None and request.weights is not None
    learning = Learning(
        method=request.method,
        task=facts.task,
        lam=request.regularisation,
        average=request.average,
        classes=facts.classes,
        weights=_weights(request, facts),
        **values_of(request, Descent),
    )
    plan = Plan(
        run_id=request.run_id or secrets.token_hex(8),
        data=request.data_id or facts.name,
        data_id=data_digest(request.data_id or facts.name),
        sizes=facts.sizes,
        dimension=learning.length(facts.dimension),
        releases=request.releases,
        source=learning,
        weights=request.weights,
        schema=facts.schema,
        bounds=facts.bounds,
        released=facts.before,
        part=facts.part,
        capacity=request.capacity is not None,
        **request.plan_settings,
    )
    return plan, advice


def foretold(plan: Plan, advice: "Advice | None") -> list[str]:
    """What is said of a plan before anything is spent, on every surface: what its choices cost in noise, and what the
    adviser warns of."""
    return list(dict.fromkeys([*noise_costs(plan), *([] if advice is None else advice.marked)]))


def left(request: Request, before: tuple[Mechanism, ...]) -> Request:
    """The request with what these releases of the same run leave of its epsilon."""
    if not before:
        return request
    mu2 = mu_of_budget(request.epsilon, request.delta) ** 2 - math.fsum(spending_of(each).mu2 for each in before)
    return replace(request, epsilon=epsilon_of_mu(math.sqrt(mu2), request.delta))


def plan_with_survey(
    request: Request, draft: Schema, sizes: tuple[int, ...], name: str, part: str = "",
    before: tuple[Mechanism, ...] = (),
) -> Plan:  # fmt: skip
    """The plan of `advised_with_survey`."""
    return advised_with_survey(request, draft, sizes, name, part, before)[0]


def advised_with_survey(
    request: Request, draft: Schema, sizes: tuple[int, ...], name: str, part: str = "",
    before: tuple[Mechanism, ...] = (), ahead: Ahead = _nothing,
) -> "tuple[Plan, Advice | None]":  # fmt: skip
    """The plan whose release 0 is a survey of what the draft leaves open: its part of mu^2, and what follows it, from
    public numbers alone; and the advice that was taken. `before`: what the same run has released already. `ahead`: gets
    the survey's plan before what follows it is advised on, which the plan says in `stage_of` alone. Errors: as
    `plan_of`; no delta; what no survey is for."""
    if not request.delta:
        raise UsageError(
            "a survey has Gaussian noise, which needs a delta; none was given; add <<delta>>, or give <<bounds>> of "
            "all columns"
        )
    if request.neighbours == "owner":
        raise UsageError(
            "a survey of columns is for neighbours by record; whole owners have too much to hide for it; give "
            "<<bounds>> of all columns",
            code="together",
        )
    rest = left(request, before)
    part_of_survey, mu2 = _survey_part(rest, draft, sizes)[0], mu_of_budget(rest.epsilon, request.delta) ** 2
    spelling, mu2 = words_first(request.spell, mu2, part_of_survey, request.delta, request.epsilon)
    mu = math.sqrt(mu2 * part_of_survey)
    columns = len(draft.columns) + len(draft.unknown) + draft.intercept
    facts = Facts(name, draft.task, columns, sizes, "survey", classes=draft.classes, part=part)
    balanced = request.class_weight == BALANCED
    words = () if request.word_list is None else read_words(Path(request.word_list))
    survey = Draft(draft, epsilon_of_mu(mu, request.delta), balanced=balanced, named=request.named, words=words,
                   spelling=spelling)  # fmt: skip
    stated = None if balanced else request.class_weight
    request = replace(request, run_id=request.run_id or secrets.token_hex(8))
    asked = _stated(request, facts, advised=False)[0]  # how training goes is not their business
    stages = [stage_plan(asked, stage) for stage in survey.stages]
    for each in stages:
        ahead(each)
    first = stages[-1]
    plan, advice = _stated(request, replace(facts, before=(*before, *(each.derived.mechanism for each in stages))))
    source = replace(plan.learning, survey=survey, weights=() if stated is None else parsed(stated, draft.target))
    longest = source.longest(first.divisor, noise_of(first))
    assert longest is not None
    whole = replace(plan, source=source, dimension=longest, released=())
    _ = whole.derived
    return whole, advice


def may_survey(request: Request) -> bool:
    """Whether the budget of a run can be shared with a survey, and its records are all that it is about."""
    return (
        bool(request.delta)
        and request.missing == "fill"
        and request.scale is None
        and request.calibration == "tight"
        and request.noise_law.by_mu
        and request.neighbours in ("record", "presence", "person")
    )


def surveyed_first(request: Request, draft: Schema, sizes: tuple[int, ...], complete: bool) -> bool:
    """Whether a run begins with a survey of what this draft leaves open: the one rule of `train`, estimators and
    consortia. Public bounds restrict one, wherever it can be made and finds anything. A schema that is `complete`
    stays as it is; columns of which only names are known, and of which no records are here, are always surveyed."""
    if request.preprocessing is not None:
        return request.preprocessing == "survey"
    if draft.unknown and not request.has_records:
        return True
    return not complete and may_survey(request) and leaves_open(draft) and not too_loud(request, draft, sizes)


def too_loud(request: Request, draft: Schema, sizes: tuple[int, ...]) -> bool:
    """Whether a survey would find nothing at this budget."""
    return _survey_part(request, draft, sizes)[1] > LOUDEST


def silence(draft: Schema, sizes: tuple[int, ...]) -> str:
    """Why there is no survey."""
    columns = len(survey_of(draft).names)
    return (
        f"a survey of {columns} columns finds nothing among {sum(sizes)} records at this budget; give <<bounds>>, "
        "raise <<epsilon>>, or use <<preprocessing=records>>"
    )


def warned_of(
    request: Request, plan: Plan, advice: "Advice | None", draft: Schema, sizes: tuple[int, ...]
) -> list[str]:
    """What is warned of before a survey, of public numbers alone: what is foretold of the plan that follows, where each
    column is one feature, and more make it no better; and that the survey will find little."""
    if advice is None:
        return foretold(plan, None)
    from dpmpc.planning.adviser import survey_warnings

    return [*foretold(plan, advice), *survey_warnings(_surveyed(request, draft, sizes))]


def on_advised_basis(request: Request, draft: Schema, sizes: tuple[int, ...]) -> Schema:
    """The draft on the basis that the request asks for; where it says none and the draft is straight, on the adviser's,
    from public numbers alone."""
    if request.basis is not None or draft.basis != "linear" or not request.delta or not TASKS[draft.task].rehearsed:
        return draft.on(request.basis)
    from dpmpc.planning.adviser import Circumstances, basis

    task: Literal["logistic", "ridge"] = "ridge" if draft.task == "ridge" else "logistic"
    columns = len(survey_of(draft).names) if leaves_open(draft) else 0
    known = Circumstances(1, sum(sizes), sum(sizes), 1, request.epsilon, request.delta, task, columns=columns)
    return draft.on(basis(known))


def _survey_part(request: Request, draft: Schema, sizes: tuple[int, ...]) -> tuple[float, float]:
    """(its part of mu^2, the noise of one count as a part of the records)."""
    from dpmpc.planning.adviser import survey_noise, survey_share

    known = _surveyed(request, draft, sizes)
    share = survey_share(known)
    return share, survey_noise(known, share)


def _surveyed(request: Request, draft: Schema, sizes: tuple[int, ...]) -> "Circumstances":
    """What is public of a survey."""
    from dpmpc.planning.adviser import Circumstances

    asked = survey_of(draft)
    return Circumstances(
        owners=len(sizes),
        smallest=min(sizes),
        records=sum(sizes),
        dimension=len(asked.names) + 1,
        epsilon=request.epsilon,
        delta=request.delta or None,
        columns=len(asked.names),
    )


def asked_of_machines(
    request: Request, draft: Schema, sizes: tuple[int, ...], name: str, part: str = "",
    before: tuple[Mechanism, ...] = (),
) -> Plan:  # fmt: skip
    """The same, for processes on several machines. Errors: also a survey that finds nothing."""
    rest = left(request, before)
    if too_loud(rest, draft, sizes):
        raise UsageError(silence(draft, sizes), code="enough")
    return plan_with_survey(request, on_advised_basis(rest, draft, sizes), sizes, name, part, before)


def _weights(request: Request, facts: Facts) -> tuple[float, ...]:
    """The weights of the classes that the request states. Errors: those of a survey, where there is none."""
    if request.class_weight is None:
        return ()
    if request.class_weight == BALANCED:
        if facts.schema is None:  # a plan that is looked at before the survey
            return ()
        raise UsageError(
            "balanced weights follow from the noisy label counts of a survey, and this run has none; state them, as in "
            "<<class_weight=no=0.1,yes=1>>, or leave <<schema>> and <<bounds>> out",
            code="together",
        )
    if facts.schema is None:
        return ()
    return parsed(request.class_weight, Schema.from_json(facts.schema).target)
