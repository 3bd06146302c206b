"""`dpmpc plan`: consortium.toml checked, and the plan that follows from it."""

from pathlib import Path

import click

from dpmpc.cli.everywhere import give
from dpmpc.errors import UsageError


@click.command("plan")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where the plan goes.  [default: plan.json beside FILE]")
def command(file: Path, out: Path | None) -> None:
    """Check FILE, a consortium.toml, and write the plan: what every site computes for itself before it takes part, and
    what it will cost. Touches no network and no record.

    Example: dpmpc plan consortium.toml
    """
    from dpmpc.aggregation.plan.guarantee import warnings_of
    from dpmpc.aggregation.plan.shown import taking_part
    from dpmpc.aggregation.plan.stages import noise_of
    from dpmpc.consortium.toml import read_consortium
    from dpmpc.run.forecast import forecast_of

    consortium = read_consortium(file)
    plan = consortium.plan
    for line in taking_part(plan, [str(endpoint) for endpoint in consortium.addresses]):
        click.echo(line)
    for each in (*plan.ahead[: plan.source.asked_first], plan):
        for line in each.source.expects(each.sizes, noise_of(each), each.counted):
            click.echo(line)
    for line in consortium.notes:
        click.echo(line)
    expected = forecast_of(plan, plan.releases, here=False)
    if expected is not None:
        click.echo(f"{expected}; an exchange takes half a round trip besides")
    for warning in warnings_of(plan):
        click.echo(f"warning: {warning}")
    out = file.with_name("plan.json") if out is None else out
    try:
        plan.write(out)
    except OSError as error:
        raise UsageError(f"the plan must be writable; {out}: {error.strerror}; name another with --out") from None
    give({"written": out, "plan": plan, "notes": consortium.notes, "warnings": warnings_of(plan)})
    click.echo(f"{out}: written; `dpmpc kit {file} --out kits` makes a folder for every site")
