"""The reservation of all stages of a run that is all here."""

from collections.abc import Sequence

from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of, held_against, stages_of
from dpmpc.aggregation.plan.stages import stage_plan
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.learning.source import Stage
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.privacy.whole import WholeRun
from dpmpc.runs.before_release import budget_of, check_budget
from dpmpc.runs.evaluating import FOLDER
from dpmpc.runs.job import OwnersJob
from dpmpc.statistics.columns import Columns, category
from dpmpc.statistics.held_out import HELD_OUT
from dpmpc.statistics.tables import Tables


def evaluation_of(training: Plan) -> list[Plan]:
    """A plan of the price of the evaluation after this one, if it has a part of the data for it: what is asked, of how
    many records, has no part in the price."""
    if not training.part or not training.delta:
        return []
    epsilon = epsilon_of_mu(mu_of_budget(training.epsilon, training.delta), training.delta)
    asked = Tables.of(Columns((category("outcome", ("no", "yes")),)), ["table(outcome)"])
    return [stage_plan(training, Stage(FOLDER, asked, epsilon, HELD_OUT))]


def keep_whole(whole: WholeRun, job: OwnersJob, plans: Sequence[Plan], attempt: Attempt = FIRST_ATTEMPT) -> None:
    """Reserves these stages of a run that is all here; `attempt`: at the first of them. Errors: as `WholeRun.keep`."""
    account = account_of(plans[0], job.request.account, callers=job.request.source is not None)
    kept = stages_of(plans, lambda plan: attempt.first_release if plan is plans[0] else 0)
    whole.keep(kept, held_against(budget_of(job), account), account)


def keep_both(whole: WholeRun, job: OwnersJob, survey: Plan, training: Plan) -> None:
    """Reserves a survey and what follows it. Errors: they do not fit into the budget together."""
    account = account_of(training, job.request.account, callers=job.request.source is not None)
    budget = held_against(budget_of(job), account)
    if budget is not None:
        coming = (entry_of(survey, FIRST_ATTEMPT, 0),)
        check_budget(training, FIRST_ATTEMPT, budget, ledger_path(job.out, 0), coming)
    keep_whole(whole, job, [survey, training, *evaluation_of(training)])
