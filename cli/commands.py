"""What commands there are, and what each is for: imported when one is called."""

import importlib
import importlib.util

import click

GROUPS = {
    "Train and ask": {
        "train": "train a private model: owners, parties, noise inside MPC, one report",
        "predict": "apply a trained model to new records",
        "stats": "tables, means, quantiles, survival and figures of models over all owners' records",
        "synth": "a synthetic table of all owners' records, from noisy tables",
        "report": "a run as one page to read, check and sign",
    },
    "Before a run": {
        "example": "made-up tables to try the other commands on",
        "meet": "what differs between sites, column by column, under a small promise",
        "describe": "look at your own records before a run, and draft a schema",
        "check": "hold your records against a schema or plan: what is missing, unknown, clipped",
        "advise": "what to run for a budget, from public numbers alone",
        "account": "noise scale from a privacy budget and back, for every calibration",
        "budget": "what was spent on the same data over several runs",
    },
    "Over several machines": {
        "init": "write consortium.toml: one file for a run over several machines",
        "plan": "check consortium.toml and write the plan",
        "kit": "write a folder for every site of consortium.toml",
        "rehearse": "all sites of a consortium on this machine, with made-up records",
        "join": "take part from a kit: run this site",
        "status": "how far a run is: beside it, or after its end",
        "keys": "certificates for a run over several machines",
    },
    "Proof and study": {
        "verify": "check that noise was added once, after aggregation",
        "sample": "draw noise inside MPC and measure it",
        "circuit": "show what a sampler computes on secret bits",
        "bench": "measure what an iteration costs",
    },
}
COMMANDS = {name: help for commands in GROUPS.values() for name, help in commands.items()}


def there(name: str) -> bool:
    """Whether a command is installed."""
    return importlib.util.find_spec(f"dpmpc.cli.{name}") is not None


def imported(name: str) -> click.Command:
    """A command that is there, as its module has it."""
    command = importlib.import_module(f"dpmpc.cli.{name}").command
    assert isinstance(command, click.Command)
    return command
