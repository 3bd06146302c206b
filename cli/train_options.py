"""The options of `dpmpc train`, by section, with help texts that say what each is for."""

from pathlib import Path
from typing import Any, get_args

import click

from dpmpc.learning.method import METHODS, Spread
from dpmpc.mpc.backend import BACKENDS
from dpmpc.mpc.pulse import STALL
from dpmpc.mpc.security import MODES
from dpmpc.privacy.law import LAWS, calibration_names, sampler_names
from dpmpc.processes.logs import LEVELS
from dpmpc.runs.request import Preprocessing


class _Sizes(click.ParamType[tuple[int, ...]]):
    """Comma-separated whole numbers."""

    name = "N1,N2,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(
                f"sizes are whole numbers with commas between; got {value!r}; write for example 500,200,100", param, ctx
            )


def _option(*names: str, **settings: Any) -> click.Option:
    """An option that shows its default, if it has one."""
    return click.Option(names, show_default=settings.get("default") is not None, **settings)


OPTIONS: dict[str, list[click.Option]] = {
    "Records": [
        _option(
            "--data",
            metavar="NAME",
            help="A data set: breast-cancer, diabetes, iris, wine, digits, synthetic (embedded); adult, kddcup99, "
            "bank, breast-cancer-wisconsin (from --data-dir).",
        ),
        _option(
            "--data-dir", type=click.Path(), help="Folder with the files of a named data set.  [default: $DPMPC_DATA]"
        ),
        _option(
            "--csv",
            type=click.Path(),
            help="Records in a CSV file with a header; text columns become one-hot features.",
        ),
        _option(
            "--records",
            metavar="SOURCE",
            help="Records in a file, a folder or a pattern of files: CSV, TSV, Parquet, Arrow or Feather, JSON lines; "
            "text also as .gz or .zst.",
        ),
        _option(
            "--database",
            metavar="URL",
            help="With --sql: records in sqlite:///FILE or postgresql://HOST/DATABASE. Login by PGUSER, PGPASSWORD or "
            "a password file, never in the URL.",
        ),
        _option("--sql", metavar="QUERY", help="With --database: one SELECT; its rows are the records."),
        _option(
            "--schema",
            "schema_file",
            type=click.Path(),
            help="Public schema of the records, JSON or TOML, as `dpmpc describe --schema` drafts it. Says what "
            "--target, --bounds, --positive, --drop and --missing would.",
        ),
        _option(
            "--memory",
            metavar="SIZE",
            help="What the owners' process may use, such as 2GB; features that need more lie in the run's folder.  "
            "[default: half of the machine's]",
        ),
        _option(
            "--precision",
            type=click.Choice(["double", "single"]),
            default="double",
            help="single: features in 32 bits, half the room; each record is rounded within the unit ball.",
        ),
        _option(
            "--target",
            metavar="COLUMN",
            help="The column to predict. Two values: logistic regression; some texts: softmax; numbers: ridge.",
        ),
        _option("--owners-column", metavar="COLUMN", help="The column that says who owns a record."),
        _option(
            "--bounds",
            "bounds_file",
            type=click.Path(),
            help="JSON or TOML file of public bounds, {column: [low, high] or [category, ...]}. Without it "
            "bounds are read from the records, which the guarantee does not cover.",
        ),
        _option(
            "--preprocessing",
            type=click.Choice(get_args(Preprocessing)),
            help="Without --bounds and --schema. survey: ranges, scales and categories come from one noisy release, "
            "inside the promise. records: they are read off the records, outside of it.  [default: survey, where "
            "delta and the number of records allow it and all processes are here]",
        ),
        _option(
            "--missing",
            type=click.Choice(["fill", "drop"]),
            default="fill",
            help="Missing features become the middle of the range (all zero for categories), or the record is dropped.",
        ),
        _option("--drop", metavar="COLUMN", multiple=True, help="A column to leave out; may be repeated."),
        _option("--positive", metavar="VALUE", help="The target's value that counts as +1."),
        _option(
            "--task",
            type=click.Choice(["logistic", "ridge", "softmax"]),
            help="The model, if the target leaves a choice.",
        ),
        _option(
            "--test-fraction", type=float, help="Share of records held out for the test.  [default: 0.2; synthetic 0.5]"
        ),
        _option("--official-test", is_flag=True, help="Test on the set's own test file (adult, kddcup99)."),
        _option(
            "--max-rows", type=int, help="Use at most so many records, drawn by the seed (synthetic: make so many)."
        ),
        _option("--dimension", type=int, help="Of synthetic data.  [default: 10]"),
        _option(
            "--intercept/--no-intercept",
            default=None,
            help="Add a constant feature, inside the unit ball.  [default: yes, but for synthetic]",
        ),
        _option(
            "--seed",
            type=int,
            default=1,
            help="Of the split into training, test and owners. Noise never depends on it.",
        ),
        _option(
            "--data-id",
            metavar="TEXT",
            help="Name under which the ledger adds up what is spent on these records.  [default: the data set's name]",
        ),
    ],
    "Owners": [
        _option("--owners", type=int, metavar="M", help="Number of owners; records are split evenly."),
        _option("--owner-sizes", type=_Sizes(), help="Records of each owner."),
        _option(
            "--min-owners",
            type=int,
            metavar="K",
            help="A release is made from the owners whose shares have come, if they are K at least; owners may leave, "
            "come late and return. Presence must not depend on records: see docs/privacy.md.  [default: all owners]",
        ),
        _option(
            "--release-wait",
            type=float,
            default=10.0,
            metavar="SECONDS",
            help="With --min-owners: how long a release waits for owners that are connected.",
        ),
        _option(
            "--skew",
            type=float,
            metavar="U",
            help="With --owners: two groups of owners, the larger ones with U times as many records.",
        ),
    ],
    "Learning": [
        _option(
            "--method",
            type=click.Choice(METHODS.names()),
            help=". ".join(f"{name}: {method.help}" for name, method in METHODS.items())
            + ".  [default: as advised, nearly always gradient]",
        ),
        _option(
            "--iterations",
            type=int,
            metavar="T",
            help="Releases of --method gradient.  [default: with neither this nor --step what `dpmpc advise` advises, "
            "which looks at no record; else 50]",
        ),
        _option(
            "--lam",
            type=float,
            help="Regularisation: mean loss + lam/2 |theta|^2. --method output needs less noise when it is larger.  "
            "[default: 0.001 for gradient, 0.01 for output]",
        ),
        _option(
            "--weights",
            type=click.Choice(["equal", "size"]),
            help="Weight of an owner: 1/m, or its share n_j/n of the records (better when sizes differ).  [default: as "
            "advised; equal]",
        ),
        _option("--step", type=float, help="Step length of --method gradient.  [default: as advised; 1/(L + lam)]"),
        _option("--radius", type=float, help="Project iterates, or local models, onto the ball of this radius."),
        _option(
            "--average",
            type=click.Choice(["none", "tail", "all"]),
            help="The model is the last iterate, or the mean of the last half of the iterates, or of all.  [default: "
            "as advised; tail]",
        ),
        _option(
            "--residual-clip",
            type=float,
            default=1.0,
            help="Ridge regression: residuals count up to this (beyond it the loss is linear), so that G is finite.",
        ),
        _option(
            "--solver-tolerance",
            type=float,
            default=1e-8,
            help="--method output: the gradient norm that every local optimum must reach; enters the sensitivity.",
        ),
    ],
    "Privacy": [
        _option(
            "--epsilon",
            type=float,
            default=1.0,
            help="Privacy budget of the whole run. Below 1 is strong, above 10 weak.",
        ),
        _option(
            "--neighbours",
            type=click.Choice(["record", "owner"]),
            default="record",
            help="What the promise hides: any one record, or all records of any one owner (more noise).",
        ),
        _option(
            "--delta", type=float, help="Failure probability of the promise, well below 1/n. Needed for Gaussian noise."
        ),
        _option(
            "--calibration",
            type=click.Choice(calibration_names()),
            default="tight",
            help="tight: the least noise that keeps the promise. zcdp: by zero-concentrated DP. paper: as printed in "
            "Jayaraman et al. 2018; the report says what that really gives.",
        ),
        _option(
            "--law",
            "--noise",
            "law",
            type=click.Choice(LAWS.names()),
            help="Law of the noise.  [default: gaussian with --delta; without, laplace for --method output]",
        ),
        _option(
            "--sensitivity",
            "spread",
            type=click.Choice(get_args(Spread)),
            default="theta",
            help="theta: logistic gradients are scaled by how far two records' can lie apart at the public iterate, "
            "which is less noise for the same promise. fixed: by 2G, as printed.",
        ),
        _option(
            "--sampler",
            type=click.Choice(sampler_names()),
            help="discrete (the default): exact law on the grid, proved. The others work on fixed-point numbers, for "
            "comparison.",
        ),
        _option(
            "--grid-bits",
            type=int,
            metavar="F",
            help="Grid step 2^-F.  [default: rounding adds at most 0.5 % to the sensitivity]",
        ),
        _option(
            "--budget",
            metavar="EPS,DELTA",
            help="Refuse a run that would spend more than this on the same records (--data-id), earlier runs included. "
            "With -I it is for the parties, each of which holds its own ledgers against it.",
        ),
        _option(
            "--ledgers",
            type=click.Path(),
            metavar="DIR",
            help="With --budget: where the ledgers of earlier runs are, in any folder below.  [default: the folder of "
            "--out]",
        ),
        _option(
            "--security-bits", type=float, default=40.0, help="Statistical security of the MPC over the whole run."
        ),
    ],
    "Parties": [
        _option(
            "--engine",
            type=click.Choice(["mpc", "clear"]),
            default="mpc",
            help="clear: the same arithmetic in one process, without MPC, for study.",
        ),
        _option(
            "--backend",
            type=click.Choice(BACKENDS.names()),
            help="How the parties compute. With an honest majority: sharing, replicated bits, for few parties; shamir, "
            "numbers mod a prime, for up to 32; mpyc, by MPyC alone, slow, to read and to check. Two parties that "
            "trust nobody else: ot, by oblivious transfer (ot-k8 sends less and computes more, ot-k2 and ot-k1 the "
            "other way round), or garbled, by garbled circuits as in the papers.  [default: the one that "
            "computes less: ot for 2, shamir from 7 parties]",
        ),
        _option(
            "--link",
            metavar="lan|wan|MBITS",
            help="With -M 2: the line between the servers, or its Mb/s as measured. ot takes the fewest bytes (ot-k8) "
            "below some 225 Mb/s.  [default: lan]",
        ),
        _option(
            "--check-owners",
            is_flag=False,
            flag_value="zero",
            type=click.Choice(["zero", "stop"]),
            help="The parties check that each owner's shares are of one vector and within the norm bound. One that "
            "fails counts as a zero vector in that release, and is named; --check-owners stop ends the run instead.",
        ),
        _option(
            "--security",
            type=click.Choice(MODES),
            default="semi-honest",
            help="semi-honest: parties follow the protocol. active: one of three may do anything; its cheats end the "
            "run before a wrong vector is released.",
        ),
        _option(
            "-M",
            "parties",
            type=int,
            default=3,
            metavar="N",
            help="Number of parties; without -I all are started here.",
        ),
        _option(
            "--role",
            type=click.Choice(["apart", "both"]),
            default="apart",
            help="both: every owner is a party, one process a site, so give as many of both (-M 16 --owners 16). "
            "With -I I and --plan: start site I here, with its own records.",
        ),
        _option(
            "-T",
            "threshold",
            type=int,
            metavar="T",
            help="So many parties together learn nothing; with --backend sharing below N/2. -M 2 -T 0 is sharing that "
            "hides nothing from either party.  [default: the largest]",
        ),
        _option(
            "-I",
            "index",
            metavar="I",
            help="Start one process here: party I (0 ... N-1), `owners` for all owners, `owner0` and so on for one.",
        ),
        _option(
            "-P",
            "addresses",
            multiple=True,
            metavar="HOST:PORT",
            help="Address of a party, once for each in order; implies -M. Party I listens there, and for owners on "
            "PORT + N.",
        ),
        _option(
            "--listen",
            metavar="HOST[:PORT]",
            help="With -I and -P: where this party listens, if others call it at another address (NAT, a proxy); for "
            "owners on PORT + N. 0.0.0.0 and :: are all addresses.",
        ),
        _option(
            "-B",
            "base_port",
            type=int,
            metavar="PORT",
            help="Party I listens on PORT + I, and for owners on PORT + N + I.  [default: free ports; 11365 with -I]",
        ),
        _option(
            "--tls",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="With -I: folder with ca.crt and this process's own .crt and .key, as `dpmpc keys` makes them. "
            "Addresses off this machine need it.",
        ),
        _option("--ssl", is_flag=True, help="As in MPyC, certificates in the folder .config: --tls .config."),
        _option(
            "--pool/--no-pool",
            default=None,
            help="Make the noise of all iterations ahead.  [default: yes for gradient]",
        ),
        _option(
            "--threads",
            type=click.IntRange(1),
            help="Threads of a party that compute.  [default: the cores of its machine, shared by the parties on it]",
        ),
        _option(
            "--wait",
            type=float,
            metavar="SECONDS",
            help="How long to wait for another process to come.  [default: 60; 600 with -I]",
        ),
        _option(
            "--stall",
            type=float,
            default=STALL,
            metavar="SECONDS",
            help="A process of which nothing at all was heard for so long counts as lost. Long work is no silence.",
        ),
    ],
    "The run": [
        _option("--out", type=click.Path(path_type=Path), help="Run directory for report, model, history and logs."),
        _option("--overwrite", is_flag=True, help="Replace an earlier run in --out."),
        _option(
            "--resume",
            type=click.Path(path_type=Path),
            metavar="RUN",
            help="Carry on an interrupted run from its last opened iterate. Takes no other option than -B, --threads, "
            "--wait and --stall.",
        ),
        _option(
            "--evaluate/--no-evaluate",
            default=True,
            help="Compute loss and test score from the plain records of this local run; outside the guarantee.",
        ),
        _option(
            "--plan",
            "plan_file",
            type=click.Path(path_type=Path),
            help="With -I: the plan.json of the run, made by --plan-only. A party then needs no records. --epsilon, "
            "--delta, -T, --neighbours, --data-id and --budget beside it are limits that the plan must keep.",
        ),
        _option(
            "--accept",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="With -I: TOML file of what this organisation takes part in: epsilon, delta, threshold, neighbours, "
            "data_id, budget_epsilon, budget_delta, schema, assumptions.",
        ),
        _option("--plan-only", is_flag=True, help="Write plan.json to --out, print the noise scale and stop."),
        _option(
            "--log-level",
            type=click.Choice(LEVELS),
            help="The least that logs hold.  [default: info]",
        ),
        _option("--log-json", is_flag=True, help="Logs, and what is shown meanwhile, as JSON lines."),
        _option(
            "--run-id",
            help="Name of the run; all processes must give the same.  [default: random; with -I from the options]",
        ),
    ],
}


class SectionedCommand(click.Command):
    """A command with these options, whose help lists them by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in OPTIONS.items():
            with formatter.section(title):
                records = [option.get_help_record(ctx) for option in options]
                formatter.write_dl([record for record in records if record is not None])
