"""Pictures as SVG text, without a library: curves, bars, intervals, steps, calibrations, fields.

What noise moved is drawn with its interval, never as an estimate alone. Colours come from the style of what a picture
is in (`style`), so both themes fit; each says in words what it shows.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Bars, Calibration, Curves, Forest, Heat, Line, Number, Profile, Shape, spelled
from dpmpc.show.style import GROUPS, PICTURE

WIDTH, HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 40
BROAD, _LABELS, _ROW = 720, 230, 18  # of pictures with a row a number: the width, that of labels, a row's height
_NAMED = 20  # what a title takes
_LONGEST = 34  # characters of a label
_READ = 40  # numbers that a picture says in words

Place = Callable[[float], float]


@dataclass(frozen=True)
class Trace:
    """A quantity by iteration, or by what `across` says. `reference`: a level to compare with. `mark`: the iteration
    where averaging begins."""

    name: str
    points: Sequence[tuple[float, float]]
    log: bool = False
    reference: tuple[str, float] | None = None
    mark: int | None = None
    across: str = "iteration"


def drawn(said: str, parts: Sequence[str], height: float, width: float = WIDTH, kind: str = "") -> str:
    """The parts as one SVG element that says the text. `kind`: its class in a page's style."""
    of = f' class="{kind}"' if kind else ""
    return f'<svg{of} role="img" viewBox="0 0 {width:g} {height:g}" aria-label="{escape(said)}">{"".join(parts)}</svg>'


def placed(panel: str, x: float, y: float) -> str:
    """A picture of WIDTH as a part of a larger one, at this place."""
    place = f'x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" preserveAspectRatio="xMidYMin"'
    return panel.replace("<svg ", f"<svg {place} ", 1)


def alone(title: str, parts: Sequence[str], width: float, height: float) -> str:
    """The parts as a picture that stands alone, with its own style."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}"><title>{escape(title)}</title><style>{PICTURE}</style>'
        f'<rect class="paper" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


def ticks(low: float, high: float, fewest: int = 4) -> list[float]:
    """Round numbers between two: at least so many, and hardly more than twice that."""
    room = (high - low) / fewest
    unit = 10.0 ** math.floor(math.log10(room))
    step = max(size * unit for size in (1, 2, 5) if size * unit <= room * (1 + 1e-9))
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def even_scale(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """(low, high, ticks) of an axis on which these values lie, whose ends are ticks."""
    low, high = min(values), max(values)
    spread = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(spread / 3))
    step *= next(k for k in (1, 2, 5, 10) if spread / (k * step) <= 5)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    if low == high:
        high = low + step
    return low, high, [low + k * step for k in range(round((high - low) / step) + 1)]


def log_scale(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """The same of a logarithmic axis; low and high are powers of ten."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    low, high = low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1)
    whole = range(math.floor(low), math.ceil(high) + 1)
    found = [m * 10.0**k for k in whole for m in (1, 2, 3, 5) if low <= math.log10(m * 10.0**k) <= high]
    while len(found) > 7:
        found = found[::2]
    if len(found) < 3:  # less than a decade: evenly between the ends
        found = [10 ** (low + k * (high - low) / 4) for k in range(5)]
    return low, high, found


def text(x: float, y: float, said: str, anchor: str = "middle", kind: str = "") -> str:
    """A text at a place."""
    of = f' class="{kind}"' if kind else ""
    return f'<text{of} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line of this class."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """A box of this class, which says its title where it is pointed at."""
    inside = f"<title>{escape(title)}</title>" if title else ""
    box = f'class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f"<rect {box}>{inside}</rect>" if title else f"<rect {box}/>"


def dot(x: float, y: float, kind: str, r: float = 3) -> str:
    """A dot of this class."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"/>'


def polyline(points: Sequence[tuple[float, float]], kind: str = "curve") -> str:
    """A line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def colour(k: int) -> str:
    """The class of group k's colour."""
    return f"of{k % GROUPS}"


# -- a curve, and bars -------------------------------------------------------------------------------------------------
def chart(curve: Trace) -> str:
    """The curve, with a text that says the same."""
    xs, ys = [x for x, _ in curve.points], [y for _, y in curve.points]
    levels = [*ys, *([curve.reference[1]] if curve.reference else [])]
    low, high, marks = log_scale(levels) if curve.log else even_scale(levels)

    def across(x: float) -> float:
        return _LEFT + (x - xs[0]) / max(1, xs[-1] - xs[0]) * (WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        y = math.log10(max(y, 10.0**low)) if curve.log else y
        return HEIGHT - _BOTTOM - (y - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    parts = rungs(up, marks)
    middle = (xs[0] + xs[-1]) // 2
    parts += [text(across(x), HEIGHT - _BOTTOM + 16, f"{x:g}") for x in sorted({xs[0], middle, xs[-1]})]
    parts.append(text((WIDTH + _LEFT) / 2, HEIGHT - 6, curve.across))
    if curve.reference:
        name, level = curve.reference
        parts.append(line(_LEFT, up(level), WIDTH - _RIGHT, up(level), "level"))
        parts.append(text(_LEFT + 6, up(level) + 14, name, "start"))
    if curve.mark is not None and xs[0] < curve.mark <= xs[-1]:
        at = across(curve.mark)
        parts.append(line(at, _TOP, at, HEIGHT - _BOTTOM, "mark"))
        parts.append(text(at + 5, HEIGHT - _BOTTOM - 6, "averaging begins", "start"))
    parts.append(polyline([(across(x), up(y)) for x, y in curve.points]))
    said = f"{curve.name}: {ys[0]:.4g} at {curve.across} {xs[0]:g}, {ys[-1]:.4g} at {curve.across} {xs[-1]:g}"
    return drawn(said, parts, HEIGHT)


def rungs(up: Place, marks: Sequence[float]) -> list[str]:
    """The lines and numbers of an axis that goes up."""
    found = []
    for tick in marks:
        found.append(line(_LEFT, up(tick), WIDTH - _RIGHT, up(tick), "grid"))
        found.append(text(_LEFT - 6, up(tick) + 4, f"{tick:.3g}", "end"))
    return found


def profile(name: str, points: Sequence[tuple[float, float]], span: tuple[float, float]) -> str:
    """What a column adds to a score at each of its values; `span`: of all columns' scores, so that pictures compare."""
    low, high, marks = even_scale(span)
    first, last = points[0][0], points[-1][0]

    def across(x: float) -> float:
        return _LEFT + (x - first) / ((last - first) or 1.0) * (WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        return HEIGHT - _BOTTOM - (y - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    parts = rungs(up, marks)
    for x, anchor in {first: "start", (first + last) / 2: "middle", last: "end"}.items():
        parts.append(text(across(x), HEIGHT - _BOTTOM + 16, f"{x:.4g}", anchor))
    parts.append(line(_LEFT, up(0), WIDTH - _RIGHT, up(0), "level"))
    parts.append(polyline([(across(x), up(y)) for x, y in points]))
    (x0, y0), (x1, y1) = points[0], points[-1]
    return drawn(f"{name}: adds {y0:.3g} at {x0:.4g}, {y1:.3g} at {x1:.4g}", parts, HEIGHT)


def bars(
    title: str,
    parts: Sequence[tuple[str, float]],
    span: tuple[float, float] = (0.0, 0.0),
    said: Callable[[float], str] | None = None,
) -> str:
    """A bar each with its number, from 0 to either side. `span`: what the axis has on it at least, so that pictures
    compare; `said`: how a number is spelled, as seconds by default."""
    word = duration if said is None else said
    values = [value for _, value in parts]
    low, high = min([0.0, span[0], *values]), max([0.0, span[1], *values])
    room, shapes = WIDTH - 230, []

    def across(value: float) -> float:
        return 150 + (value - low) / ((high - low) or 1.0) * room

    for k, (name, value) in enumerate(parts):
        y, (begin, end) = 12 + 34 * k, sorted((across(0.0), across(value)))
        shapes.append(text(142, y + 15, name[:20], "end"))
        shapes.append(rect(begin, y, max(end - begin, 2.0), 22, "bar"))
        shapes.append(text(max(end, begin + 2) + 6, y + 15, word(value), "start"))
    return drawn(_said(title, (f"{name} {word(value)}" for name, value in parts)), shapes, 16 + 34 * len(parts))


def duration(seconds: float) -> str:
    """Seconds for people: three digits and a unit."""
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


def histogram(name: str, counts: Sequence[tuple[str, int]]) -> str:
    """Counts as small bars side by side; "" without any."""
    most = max((count for _, count in counts), default=0)
    if not most:
        return ""
    step = 240 / len(counts)
    shapes = [
        rect(k * step, 48 - 48 * count / most, step - 1, 48 * count / most, "bar", f"{label}: {count}")
        for k, (label, count) in enumerate(counts)
    ]
    return drawn(name, shapes, 48, 240, "small")


# -- answers with intervals --------------------------------------------------------------------------------------------
def pictures(answer: Answer) -> list[str]:
    """The pictures of an answer; none where there is nothing to draw."""
    return [drawn for drawn in map(picture, answer.shapes) if drawn]


def picture(shape: Shape) -> str:
    """A picture of what an answer says."""
    match shape:
        case Bars():
            return _rows(shape.lines, shape.title, zero=True, bars=True)
        case Forest():
            return _rows(shape.lines, shape.title, ratios=shape.ratios)
        case Curves():
            return _steps(shape)
        case Calibration():
            groups = list(dict.fromkeys(line.labels[:-1] for line in shape.lines))
            points = []
            for each in shape.lines:  # of percent, in classes that a label gives: "10-20%"
                low, high = (float(end) for end in each.labels[-1].rstrip("%").split("-"))
                k = groups.index(each.labels[:-1])
                points.append(((low + high) / 200 + 0.012 * k, each.number.mapped(0.01), k))
            return calibration(points, [group[0] if group else "" for group in groups], shape.title)
        case Heat():
            return _field(shape)
        case Profile():
            return profile(shape.title, shape.points, shape.span)


def _said(title: str, parts: Iterable[str]) -> str:
    """What a picture shows, in words; of very many numbers the first."""
    found = list(parts)
    more = [f"and {len(found) - _READ} more"] if len(found) > _READ else []
    return f"{title}: {'; '.join([*found[:_READ], *more])}"


def _titled(title: str, parts: Sequence[str], height: float, said: Iterable[str]) -> str:
    return drawn(_said(title, said), [text(4, 13, title, "start", "name"), *parts], height, BROAD, "broad")


def _name(each: Line) -> str:
    return " · ".join(label for label in each.labels if label) or each.statistic


def _interval(number: Number) -> str:
    if number.estimate is None:
        return "no estimate"
    if number.low is None or number.high is None:
        return f"{number.estimate:.3g}"
    return f"{number.estimate:.3g} [{number.low:.3g}, {number.high:.3g}]"


def _rows(lines: Sequence[Line], title: str, *, zero: bool = False, bars: bool = False, ratios: bool = False) -> str:
    """One row a number, under an axis: its interval and, with `bars`, a bar from 0. `ratios`: the axis is logarithmic,
    with a mark at 1, where nothing is changed; an interval that is open reaches the axis's end."""
    known = [
        (each, each.number)
        for each in lines
        if each.number.estimate is not None and (not ratios or each.number.estimate > 0)
    ]
    ends = [end for _, n in known for end in (n.low, n.high, n.estimate) if end is not None and math.isfinite(end)]
    if not ends:
        return ""
    tall, inner = _NAMED + _ROW * len(known) + 24, BROAD - _LABELS - 20
    if ratios:
        low, high, marks = log_scale([*ends, 1.0])
    else:
        low, high = min([*ends, 0.0] if zero else ends), max(ends)
        room = (high - low or abs(high) or 1.0) * 0.04
        low, high = low if zero and low == 0 else low - room, high + room
        marks = ticks(low, high)

    def x(value: float) -> float:
        if ratios:  # an end without a bound is the axis's
            value = low if value <= 0 else min(max(math.log10(value), low), high) if math.isfinite(value) else high
        return _LABELS + inner * (value - low) / (high - low)

    parts = []
    for tick in marks:
        parts.append(line(x(tick), _NAMED, x(tick), tall - 20, "grid"))
        parts.append(text(x(tick), tall - 6, f"{tick:.3g}" if ratios else spelled(tick)))
    if ratios:
        parts.append(line(x(1.0), _NAMED, x(1.0), tall - 20, "level"))
    for k, (each, number) in enumerate(known):
        y = _NAMED + _ROW * (k + 0.5)
        assert number.estimate is not None
        parts.append(text(_LABELS - 8, y + 4, _name(each)[:_LONGEST], "end"))
        if bars:
            a, b = sorted((x(0.0), x(number.estimate)))
            parts.append(rect(a, y - 6, b - a, 12, "band"))
        if number.low is not None and number.high is not None:
            parts.append(line(x(number.low), y, x(number.high), y, "of0"))
        parts.append(dot(x(number.estimate), y, "of0"))
    return _titled(title, parts, tall, (f"{_name(each)} {_interval(number)}" for each, number in known))


def _steps(shape: Curves) -> str:
    """Steps with the interval as a band, one colour an arm."""
    lines, grouped = shape.lines, int(shape.grouped)
    arms = list(dict.fromkeys(each.labels[:grouped] for each in lines))
    latest = max(float(each.labels[-1]) for each in lines)

    def x(value: float) -> float:
        return 60 + (BROAD - 80) * value / latest

    def y(value: float) -> float:
        return 270 - 240 * value

    parts = [part for v in (0.0, 0.25, 0.5, 0.75, 1.0) for part in (
        line(60, y(v), BROAD - 20, y(v), "grid"), text(52, y(v) + 4, spelled(v), "end"))]  # fmt: skip
    parts += [text(x(t), 290, spelled(t)) for t in ticks(0.0, latest)]
    said = []
    for k, arm in enumerate(arms):
        mine = [each for each in lines if each.labels[:grouped] == arm]
        before, at, path = (1.0, 1.0), 0.0, f"M{x(0):.1f},{y(1):.1f}"
        for each in mine:
            end, number = float(each.labels[-1]), each.number
            low, value, high = number.low or 0.0, number.estimate or 0.0, number.high or 0.0
            parts.append(rect(x(at), y(before[1]), x(end) - x(at), y(before[0]) - y(before[1]), colour(k)))
            path += f"H{x(end):.1f}V{y(value):.1f}"
            before, at = (low, high), end
        parts.append(f'<path class="{colour(k)}" d="{path}"/>')
        name = arm[0] if arm else "all"
        parts.append(text(BROAD - 130, 30 + 16 * k, name[:18], "start", colour(k)))
        said += [f"{name} {_interval(mine[-1].number)} at {mine[-1].labels[-1]}"] if mine else []
    return _titled(shape.title, parts, 300, said)


def calibration(
    points: Sequence[tuple[float, Number, int]], groups: Sequence[str] = ("",), title: str = "calibration"
) -> str:
    """Predicted probability across, observed share up, intervals as lines, the diagonal for comparison. `points`:
    (predicted, observed, which of the groups)."""
    size, top_of, bottom = 300, 12, 40
    known = [(p, n, k) for p, n, k in points if n.estimate is not None]
    ends = [end for p, n, _ in known for end in (p, n.estimate, n.high) if end is not None]
    top = next(t for t in (0.05, 0.1, 0.2, 0.5, 1.0) if t >= min(1.0, max(ends, default=1.0)))
    inner = size - top_of - bottom

    def x(value: float) -> float:
        return 52 + min(max(value / top, 0.0), 1.0) * inner

    def y(value: float) -> float:
        return top_of + inner - min(max(value / top, 0.0), 1.0) * inner

    parts = []
    for k in range(5):
        tick = top * k / 4
        parts.append(line(x(0), y(tick), x(top), y(tick), "grid"))
        parts.append(text(x(0) - 6, y(tick) + 4, f"{tick:.3g}", "end"))
        parts.append(text(x(tick), y(0) + 16, f"{tick:.3g}"))
    parts.append(line(x(0), y(0), x(top), y(top), "level"))
    parts.append(text(x(top / 2), size - 6, "predicted probability"))
    for predicted, seen, k in known:
        if seen.low is not None and seen.high is not None:
            parts.append(line(x(predicted), y(seen.low), x(predicted), y(seen.high), colour(k)))
        parts.append(dot(x(predicted), y(seen.estimate or 0.0), colour(k), 3.5))
    parts += [text(x(0) + 8, 26 + 16 * k, name, "start", colour(k)) for k, name in enumerate(groups) if name]
    said = _said(title, (f"{p:.3g} predicted, {_interval(n)} observed" for p, n, _ in known))
    return drawn(said, parts, size, 52 + inner + 14, "square")


def _field(shape: Heat) -> str:
    """Cells, the darker the larger the number; each says its interval where it is pointed at."""
    downs = list(dict.fromkeys(each.labels[-2] if len(each.labels) > 1 else "" for each in shape.lines))
    acrosses = list(dict.fromkeys(each.labels[-1] for each in shape.lines))
    largest = max((each.number.estimate or 0.0 for each in shape.lines), default=0.0) or 1.0
    wide, high = (BROAD - _LABELS - 20) / max(len(acrosses), 1), 22.0
    tall = _NAMED + high * len(downs) + 24
    parts, said = [], []
    for each in shape.lines:
        down, across = (each.labels[-2] if len(each.labels) > 1 else ""), each.labels[-1]
        share = min(max((each.number.estimate or 0.0) / largest, 0.0), 1.0)
        box = rect(
            _LABELS + wide * acrosses.index(across), _NAMED + high * downs.index(down), wide - 1, high - 1, "bar",
            f"{down} · {across}: {_interval(each.number)}",
        )  # fmt: skip
        parts.append(box.replace("<rect ", f'<rect opacity="{0.06 + 0.94 * share:.2f}" ', 1))
        said.append(f"{down} · {across} {_interval(each.number)}")
    parts += [text(_LABELS - 8, _NAMED + high * (k + 0.65), name[:_LONGEST], "end") for k, name in enumerate(downs)]
    shown = max(1, math.ceil(len(acrosses) * 48 / (BROAD - _LABELS)))  # of many names across, some
    parts += [
        text(_LABELS + wide * (k + 0.5), tall - 8, name[:12]) for k, name in enumerate(acrosses) if k % shown == 0
    ]
    return _titled(shape.title, parts, tall, said)
