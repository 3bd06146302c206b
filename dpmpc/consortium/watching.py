"""All sites of a run at once, as the processes of one folder see them: for a terminal, as a page, as metrics.

What is shown is what each process says to all others anyway: who is connected, the phase, how many releases are opened,
what is spent, its last word. Nothing is asked of anybody, nothing is written into the run's folder, and no record or
share is in a status file (`processes.status`). The page has no scripts; it is made anew whenever it is asked for.
"""

import re
import time
from collections.abc import Sequence

from dpmpc.consortium.status import RunStatus
from dpmpc.lazy import dataclass
from dpmpc.processes.status import BY_OTHERS, FAILED, FINISHED, GONE, LEFT_OUT, State
from dpmpc.show import html

HERE, SEEN, UNSEEN = "here", "connected", "not seen"
_RANGE = re.compile(r"\((\d+)\.\.(\d+)\)")
_SECONDS = 5  # until a page that is served is asked for again


@dataclass(frozen=True)
class WatchedSite:
    """A process that the plan has: what others call it, whether it is here, connected with one that is, or not seen;
    and of one that is here its state."""

    name: str
    role: str
    where: str
    state: State | None = None


def sites_of(found: RunStatus) -> tuple[WatchedSite, ...]:
    """All parties and owners of the plan. Where the run is over nobody is connected, and none is missed."""
    plan, sites = found.plan, list[WatchedSite]()
    alive = {name for state in found.processes if state.alive for name in state.connected}
    many = [tuple(map(int, match.groups())) for name in alive if (match := _RANGE.search(name))]
    together = next((state for state in found.processes if _plain(state) == "owners"), None)
    for role, count in (("party", plan.parties), ("owner", plan.owners)):
        for number in range(count):
            word = f"{role} {number}"
            names = {word, plan.called(word)}
            state = next((each for each in found.processes if _plain(each) in names), None)
            state = together if state is None and role == "owner" else state
            there = names & alive or (role == "owner" and any(low <= number <= high for low, high in many))
            where = HERE if state is not None else SEEN if there else UNSEEN
            sites.append(WatchedSite(plan.called(word), role, where, state))
    return tuple(sites)


def _plain(state: State) -> str:
    """The process's name without the stage that it is in."""
    return re.sub(r" \((survey|words|questions|evaluation|first|second)\)$", "", state.process)


def lines(found: RunStatus, now: float | None = None) -> list[str]:
    """For a terminal: a line a site, and the last word of those that are here."""
    at, said = time.time() if now is None else now, list[str]()
    wide = max((len(site.name) for site in sites_of(found)), default=0)
    for site in sites_of(found):
        said.append(f"{site.name.ljust(wide)}  {_doing(site)}")
        if site.state is not None and site.state.event:
            said.append(f"{' ' * wide}  {max(0.0, at - site.state.event_time):.0f} s ago: {site.state.event}")
    return ["".join(c if c.isprintable() else " " for c in line) for line in said]  # a file may say anything


def _doing(site: WatchedSite) -> str:
    state = site.state
    if state is None:
        return site.where
    counted = f", {state.release} of {state.releases} releases" if state.releases else ""
    return f"{state.phase}{counted}"


def page(found: RunStatus, again: bool = False, now: float | None = None) -> str:
    """The same as a page; `again`: it asks for itself anew every few seconds."""
    at, plan, spent = time.time() if now is None else now, found.plan, found.spent
    rows = [
        (
            site.name, site.role, site.where if site.state is None else site.state.phase,
            "" if site.state is None or not site.state.releases else f"{site.state.release} of {site.state.releases}",
            "" if site.state is None or not site.state.event
            else f"{max(0.0, at - site.state.event_time):.0f} s ago: {site.state.event}",
        )
        for site in sites_of(found)
    ]  # fmt: skip
    facts = [("run", plan.run_id), ("data", plan.data), ("releases planned", found.planned)]
    if spent is not None:
        facts += [("releases spent", spent.releases), ("epsilon spent", _epsilon(spent.epsilon)),
                  ("of", _epsilon(spent.of_epsilon)), ("delta", f"{spent.delta:g}")]  # fmt: skip
    body = html.facts("The run", facts) + html.table(
        "All sites, as the processes of this folder see them",
        ("Site", "Role", "Phase", "Releases", "Last word"), rows, words=True,
    )  # fmt: skip
    made = html.page(f"Run {plan.run_id}", body, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at)))
    tag = f'<meta http-equiv="refresh" content="{_SECONDS}">'
    return made.replace('<meta name="viewport"', f'{tag}<meta name="viewport"', 1) if again else made


def _epsilon(value: float | None) -> str:
    return "no promise" if value is None else f"{value:.4g}"


def metrics(found: RunStatus) -> str:
    """The same as numbers, in the text format that Prometheus and OpenMetrics read, for a node exporter's folder."""
    plan, sites, spent = found.plan, sites_of(found), found.spent
    run = f'run="{_label(plan.run_id)}"'
    states = {
        site.name: f'{run},site="{_label(site.name)}",role="{site.role}"' for site in sites if site.state is not None
    }
    here = [(states[site.name], site.state) for site in sites if site.state is not None]
    parts = [
        _metric("dpmpc_site_seen", "Whether a site is here and alive, or connected.", [
            (f'{run},site="{_label(site.name)}",role="{site.role}"', float(_there(site))) for site in sites
        ]),
        _metric("dpmpc_releases_planned", "Releases of the run, its stages' too.", [(run, float(found.planned))]),
        _metric("dpmpc_releases_opened", "Releases that a process here has seen opened.", [
            (label, float(state.release)) for label, state in here
        ]),
        _metric("dpmpc_process_failed", "Whether a process here ended otherwise than it should.", [
            (label, float(state.phase in (FAILED, GONE))) for label, state in here
        ]),
        _metric("dpmpc_process_finished", "Whether a process here finished.", [
            (label, float(state.phase in (FINISHED, BY_OTHERS))) for label, state in here
        ]),
        _metric("dpmpc_process_left_out", "Whether the run goes on without a process here.", [
            (label, float(state.phase == LEFT_OUT)) for label, state in here
        ]),
        _metric("dpmpc_last_word_timestamp_seconds", "When a process here last said something.", [
            (label, state.event_time) for label, state in here if state.event_time
        ]),
    ]  # fmt: skip
    if spent is not None:
        parts.append(_metric("dpmpc_releases_spent", "Releases that ledgers here count.", [(run, spent.releases)]))
        for name, text, value in (
            ("dpmpc_epsilon_spent", "What they come to.", spent.epsilon),
            ("dpmpc_epsilon_planned", "What the whole plan may come to.", spent.of_epsilon),
        ):
            if value is not None:
                parts.append(_metric(name, text, [(run, value)]))
    return "".join(parts) + "# EOF\n"


def _there(site: WatchedSite) -> bool:
    return site.where == SEEN or (site.state is not None and site.state.alive)


def _metric(name: str, text: str, values: Sequence[tuple[str, float]]) -> str:
    if not values:
        return ""
    body = "".join(f"{name}{{{labels}}} {value!r}\n" for labels, value in values)
    return f"# HELP {name} {text}\n# TYPE {name} gauge\n{body}"


def _label(text: str) -> str:
    """A label's value as the format escapes it; one line."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("\\", "\\\\").replace('"', '\\"')
