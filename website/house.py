"""The two pictures of the page on architecture: its rooms, and the states of a run.

    python -m website.house    draws docs/explain/rooms.svg and docs/explain/states.svg

Rooms and floors are those of the import contract, arrows those of the imports: of an arrow that others lead along as
well, only these are drawn. The states are listed here, each with the code that it is.
"""

import ast
import functools
import math
import random
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

ROOT = Path(__file__).parents[1]
ROOMS, STATES = ROOT / "docs" / "explain" / "rooms.svg", ROOT / "docs" / "explain" / "states.svg"
LAYERS = "imports point down, and every module has its layer"
WAY = ("intake", "records", "learning", "mpc", "noise", "aggregation", "run", "local")  # of an owner's vector
TURNS = 1500  # of the search for a place for each
WIDTH = 13  # half columns of the rooms
TOPS = ("cli", "benchmarks", "circuits")  # folders beside the package, linked into it
STYLE = """text { font: 14px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle; }
.s { font-size: 13px; fill: #4d5761; } .l { text-anchor: start; }
.c { font: 12px ui-monospace, monospace; fill: #4d5761; }
rect { fill: #f3f5f7; stroke: #6b7680; } .b { fill: #ffffff; stroke: none; } .f { fill: #f7f9fb; stroke: none; }
.w { fill: #e3effb; stroke: #0b5cad; } .e { fill: #e6f4ea; stroke: #14662f; }
path { fill: none; stroke: #6b7680; stroke-width: 1.2; marker-end: url(#a); }
.d { stroke: #b3261e; stroke-dasharray: 5 3; } #a path { fill: #6b7680; stroke: none; marker-end: none; }"""
MARKER = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)
DIES = "a process dies, in whatever state: the same command starts it again"
Arrow = tuple[str, str]

# name -> (column, row, what happens there, the code that it is); "" for what is no state of the protocol
BOXES: Mapping[str, tuple[int, int, str, str]] = {
    "start": (0, 0, "plan, ledger and what was opened are read", "aggregation.party.resume.standing"),
    "meet": (1, 0, "parties connect, owners call; another plan is refused", "aggregation.party.start.PartyStart.meet"),
    "attempt": (2, 0, "its number is above every one that was begun", "aggregation.party.resume.NumberedLink"),
    "settle": (
        3,
        0,
        "goes on after all that is spent; what was opened is told",
        "aggregation.party.resume.settle",
    ),
    "begin": (3, 1, "a token is drawn; owners hear attempt and past", "aggregation.party.owner_gate.OwnerGate.begin"),
    "noise": (3, 2, "made for all releases that are left", "aggregation.party.noise_source.noise_source"),
    "release": (2, 2, "agreed who is there; added up; a ledger line; opened", "aggregation.party.release.release"),
    "join": (
        2,
        1,
        "an owner that comes late, or again, takes what it missed",
        "aggregation.owner.client.OwnerClient.join",
    ),
    "left out": (
        1,
        1,
        "was away; its ledger says who has the rest; it waits",
        "privacy.ledger.Ledger.goes_on",
    ),
    "archive": (
        1,
        2,
        "the run is over; owners that missed the end get all of it",
        "aggregation.party.archive.Archive.serve",
    ),
    "end": (0, 2, "every owner has the result", "aggregation.party.owner_gate.OwnerGate.linger"),
}
ARROWS: Mapping[Arrow, str] = {
    ("start", "meet"): "",
    ("meet", "attempt"): "all here",
    ("attempt", "settle"): "",
    ("settle", "begin"): "",
    ("begin", "noise"): "",
    ("noise", "release"): "",
    ("join", "release"): "with the next release",
    ("release", "archive"): "last one",
    ("archive", "end"): "",
    ("meet", "left out"): "the others have gone on",
    ("left out", "end"): "",
}


# -- rooms -------------------------------------------------------------------------------------------------------------
def floors() -> list[list[str]]:
    """The rooms on each floor of the import contract, from above."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(each for each in contracts["contracts"] if each["name"] == LAYERS)["layers"]
    return [[name.strip() for name in floor.split("|")] for floor in layers]


def imports(rooms: Iterable[str]) -> set[Arrow]:
    """(who imports, whom) of these rooms."""
    known = set(rooms)
    return {arrow for arrow in _imported() if known.issuperset(arrow)}


@functools.cache
def _imported() -> frozenset[Arrow]:
    """The same of all that the sources name: they are parsed once."""
    found = set[Arrow]()
    for top in ("dpmpc", *TOPS):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT).parts
            room = (parts[1] if top == "dpmpc" else top).removesuffix(".py")
            if top == "dpmpc" and room in TOPS:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpmpc"):
                    inside = (node.module or "").split(".")[1:2] or [alias.name for alias in node.names]
                    found |= {(room, other) for other in inside if other != room}
    return frozenset(found)


def least(arrows: set[Arrow]) -> set[Arrow]:
    """Those without which somebody would not be reached."""

    def reached(start: str, without: Arrow) -> set[str]:
        seen, coming = set[str](), [start]
        while coming:
            here = coming.pop()
            after = {b for a, b in arrows if a == here and (a, b) != without} - seen
            seen |= after
            coming += after
        return seen

    return {arrow for arrow in arrows if arrow[1] not in reached(arrow[0], arrow)}


def _cost(levels: Sequence[Sequence[str]], drawn: Sequence[Arrow]) -> Callable[[Mapping[str, int]], float]:
    """What is to be least, of the half column of each room."""
    floor_of = {name: k for k, floor in enumerate(levels) for name in floor}
    place = {name: k for k, name in enumerate(floor_of)}
    low, high = (np.array([floor_of[arrow[end]] for arrow in drawn])[:, None] for end in (0, 1))
    begin, finish = (np.array([place[arrow[end]] for arrow in drawn]) for end in (0, 1))
    down = np.arange(len(levels)) - low
    by = [(e, k, place[other]) for e, (a, b) in enumerate(drawn)
          for k in range(floor_of[a] + 1, floor_of[b]) for other in levels[k]]  # fmt: skip
    arrow, floor, passed_by = np.array(by).T
    both = [(e, f, inside[0], inside[-1]) for e, f in combinations(range(len(drawn)), 2)
            if len(inside := range(max(low[e, 0], low[f, 0]), min(high[e, 0], high[f, 0]) + 1)) > 1]  # fmt: skip
    one, other, first, last = np.array(both).T

    def cost(at: Mapping[str, int]) -> float:
        columns = np.array([at[name] for name in floor_of])
        x, u = columns[begin][:, None], columns[finish][:, None]
        between = x + (u - x) * down / (high - low)  # by arrow and floor
        passed = np.abs(between[arrow, floor] - columns[passed_by]) < 1.4
        crossed = (between[one, first] - between[other, first]) * (between[one, last] - between[other, last]) < 0
        return float(30 * passed.sum() + 4 * crossed.sum() + np.abs(x - u).sum() / 4)

    return cost


def placed(levels: Sequence[Sequence[str]], drawn: set[Arrow]) -> dict[str, tuple[int, int]]:
    """(half column, floor) of each room: arrows pass by few other rooms, cross little and are short. The best of a
    search that goes the same way each time."""
    rng, floor_of = random.Random(1), {name: k for k, floor in enumerate(levels) for name in floor}
    spots = list(range(0, WIDTH, 2))
    at = {name: rng.choice(spots) for name in floor_of}
    for floor in levels:
        at |= dict(zip(floor, rng.sample(spots, len(floor)), strict=True))

    cost = _cost(levels, sorted(drawn))
    least_cost, names = cost(at), sorted(floor_of)
    for turn in range(TURNS):
        before, name = dict(at), rng.choice(names)
        spot = rng.choice(spots)
        for other in levels[floor_of[name]]:
            if at[other] == spot:
                at[other] = at[name]
        at[name] = spot
        now = cost(at)
        if now <= least_cost or rng.random() < math.exp((least_cost - now) / (8 * (1 - turn / TURNS) + 0.01)):
            least_cost = now
        else:
            at = before
    return {name: (at[name], floor_of[name]) for name in floor_of}


def rooms_picture() -> str:
    """The rooms, floor by floor, and the arrows between them."""
    levels, half, down = floors(), 62, 50
    drawn = least(imports(name for floor in levels for name in floor))
    place = {name: (70 + half * x, 26 + down * y) for name, (x, y) in placed(levels, drawn).items()}
    width, parts = 140 + half * (WIDTH - 1), list[str]()
    for k in range(0, len(levels), 2):
        parts.append(f'<rect class="f" y="{1 + down * k}" width="{width}" height="{down}"/>')
    for a, b in sorted(drawn):
        (x, y), (u, v) = place[a], place[b]
        parts.append(f'<path d="M{x} {y + 14} L{u} {v - 15}"/>')
    for name, (x, y) in place.items():
        kind = ' class="w"' if name in WAY else ""
        parts.append(f'<rect{kind} x="{x - 52}" y="{y - 14}" width="104" height="28" rx="4"/>')
        parts.append(f'<text x="{x}" y="{y + 4}">{escape(name)}</text>')
    text = (
        f"{len(place)} rooms on {len(levels)} floors, from __main__ and cli above to errors and lazy below. All arrows "
        "of imports between them point down; those that others lead along as well are left out."
    )
    return _svg(width, 2 + down * len(levels), text, parts)


# -- states ------------------------------------------------------------------------------------------------------------
def states_picture() -> str:
    """The states of a run as a party has them."""
    width, height, across, down = 212, 84, 276, 132
    middle = {name: (20 + width // 2 + c * across, 52 + height // 2 + r * down) for name, (c, r, _, _) in BOXES.items()}
    parts = list[str]()
    for (a, b), said in ARROWS.items():
        (x, y), (u, v) = middle[a], middle[b]
        side = (u > x) - (u < x)
        begin, end = (x + side * width // 2, y), (u - side * (width // 2 + 1), v)
        if not side:
            begin = (x, y + height // 2)
        if y != v:
            end = (u, v - height // 2 - 1)
        down_to = "" if y == v else f" V{end[1]}"
        parts.append(f'<path d="M{begin[0]} {begin[1]}{f" H{end[0]}" if side else ""}{down_to}"/>')
        beside = (begin[0] + end[0]) // 2, (begin[1] + end[1]) // 2
        shown = (beside[0], beside[1] - 6, "s") if side else (beside[0] + 8, beside[1] + 2, "s l")
        parts.append(f'<text class="{shown[2]}" x="{shown[0]}" y="{shown[1]}">{escape(said)}</text>' if said else "")
    parts += _again(middle, height)
    for name, (_, _, text, code) in BOXES.items():
        x, y = middle[name][0] - width // 2, middle[name][1] - height // 2
        kind = "e" if name == "end" else "w"
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>')
        parts.append(f'<text x="{x + width // 2}" y="{y + 20}" font-weight="600">{escape(name)}</text>')
        for k, line in enumerate(_wrapped(text, 31)):
            parts.append(f'<text class="s" x="{x + width // 2}" y="{y + 37 + 14 * k}">{escape(line)}</text>')
        parts.append(
            f'<text class="c" x="{x + width // 2}" y="{y + 76}">{escape(".".join(code.split(".")[-2:]))}</text>'
        )
    told = "; ".join(f"{name}, {text}" for name, (_, _, text, _) in BOXES.items())
    text = f"The states of a run at a party: {told}. Last: {DIES}."
    return _svg(40 + 3 * across + width, 52 + 2 * down + height + 56, text, list(filter(None, parts)))


def _again(middle: Mapping[str, tuple[int, int]], height: int) -> list[str]:
    """What leads back: the next release, and a death anywhere."""
    x, low = middle["release"][0], middle["release"][1] + height // 2
    (u, top), end = middle["start"], middle["settle"][0]
    top -= height // 2
    return [
        f'<path d="M{x + 40} {low} C{x + 40} {low + 36} {x - 40} {low + 36} {x - 40} {low + 1}"/>',
        f'<text class="s" x="{x}" y="{low + 44}">next release</text>',
        f'<path class="d" d="M{end} {top} V24 H{u} V{top - 1}"/>',
        f'<text class="s" x="{(u + end) // 2}" y="16">{escape(DIES)}</text>',
    ]


def _wrapped(text: str, most: int) -> list[str]:
    """Lines of at most so many letters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _svg(width: int, height: int, text: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
    ground = f'<rect class="b" width="{width}" height="{height}"/>'
    return "\n".join([
        f"{head} aria-label={quoteattr(text)}>", f"<style>\n{STYLE}\n</style>", MARKER, ground, *parts, "</svg>", "",
    ])  # fmt: skip


def main() -> int:
    """The command."""
    ROOMS.write_text(rooms_picture(), encoding="utf-8")
    STATES.write_text(states_picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
