"""Public cells for numbers: stated cuts, or cells that follow from what a private survey has opened."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_numbers import CELLS, LOWEST, NUMBER, OCTAVES, Summary
from dpmpc.statistics.cells import Bins, even
from dpmpc.statistics.columns import Column, Columns, Quantity
from dpmpc.statistics.intervals import Floats

CELLS_OF_A_NUMBER = 14
_LEAST = 0.02  # of the records: a cell that holds fewer is joined to its neighbour
_ZERO = math.ldexp(1.0, LOWEST)  # what counts as zero
Piece = tuple[float, float, float]  # from, to, mass
_WIDEST = 6.0  # deviations on either side of the mean that a surveyed range has at most
_BESIDE = 2.5  # deviations of the noise below which an octave counts as empty


def stated(columns: Columns, cuts: Mapping[str, Any], cells: int | None) -> Columns:
    """The columns with the cuts of `cuts`: a list of edges, or a number of even cells; `cells`: even cells for all
    others. Errors: a column that is none or no number; cuts that are none."""
    for name in cuts:
        if not isinstance(columns[name], Quantity):
            raise UsageError(
                f"<<cuts>> are for columns of numbers; '{name}' has levels; leave it out there", code="column"
            )
    return Columns(tuple(_with_cuts(column, cuts.get(column.name, cells)) for column in columns.columns))


def without_cuts(columns: Columns) -> tuple[str, ...]:
    """The columns of numbers whose cells are not public yet."""
    return tuple(column.name for column in columns.columns if isinstance(column, Quantity) and not column.cuts)


def at_most(columns: Columns) -> Columns:
    """The columns with as many cells as a survey can lead to at most: what stands in for them before it."""
    waiting = dict.fromkeys(without_cuts(columns), CELLS_OF_A_NUMBER)
    return stated(columns, waiting, None) if waiting else columns


def surveyed(
    columns: Columns, survey: Survey, total: Floats, noise: float, places: Mapping[str, int] | None = None
) -> Columns:  # fmt: skip
    """The columns with cells for those that a survey was about. total: the opened sum; noise: its deviation a
    coordinate, in records; places: decimals of columns, where they are known."""
    found = {
        name: total[k * NUMBER : (k + 1) * NUMBER][:CELLS] for k, name in enumerate(survey.numbers)
    }  # fmt: skip
    made: list[Column] = []
    for column in columns.columns:
        if isinstance(column, Quantity) and column.name in found:
            spelt = 0 if column.dates else (places or {}).get(column.name)
            cuts = edges_of(found[column.name], noise, column.low, column.high, places=spelt)
            made.append(replace(column, cuts=cuts))
        else:
            made.append(column)
    return Columns(tuple(made))


def edges_of(
    counts: Floats, noise: float, low: float, high: float, cells: int = CELLS_OF_A_NUMBER, places: int | None = None
) -> tuple[float, ...]:
    """Edges from low to high of so many cells of like masses at most. counts (CELLS,): how many are missing, zero, in
    each negative and each positive octave, as surveyed; places: decimals that numbers have, if it is known.

    Octaves that stand out of the noise are cut evenly, the fullest first; those with little are joined. Zero has a
    cell of its own where it stands out. Numbers of so many decimals have edges between two of them.
    """
    pieces = _pieces(counts, noise, low, high)
    total = math.fsum(mass for _, _, mass in pieces) or 1.0
    alone = next((k for k, (begin, end, mass) in enumerate(pieces) if begin <= 0 < end and mass > _LEAST * total), None)
    whole = _few(_joined(pieces, _LEAST * total, alone), cells)
    parts = [1] * len(whole)
    while sum(parts) < cells:
        each = zip(whole, parts, strict=True)
        room = [mass / part if end - begin > 2 * _ZERO else 0.0 for (begin, end, mass), part in each]
        k = int(np.argmax(room))
        if room[k] <= _LEAST * total:
            break
        parts[k] += 1
    edges = [low]
    for (begin, end, _), part in zip(whole, parts, strict=True):
        edges += [_neat(float(edge), low, high, edges[-1], places) for edge in np.linspace(begin, end, part + 1)[1:]]
    return (low, *dict.fromkeys(edge for edge in edges[1:-1] if low < edge < high), high)


def _pieces(counts: Floats, noise: float, low: float, high: float) -> list[Piece]:
    """The cells of a survey between low and high, in order, with their masses, 0 where one does not stand out."""
    found = [(-_ZERO, _ZERO, float(counts[1]))]
    for k in range(2 * OCTAVES):
        size = math.ldexp(1.0, LOWEST + k % OCTAVES)
        found.append((*((-2 * size, -size) if k < OCTAVES else (size, 2 * size)), float(counts[2 + k])))
    cut = [(max(begin, low), min(end, high), mass if mass > _BESIDE * noise else 0.0) for begin, end, mass in found]
    return sorted(piece for piece in cut if piece[0] < piece[1])


def _joined(pieces: Sequence[Piece], least: float, alone: int | None) -> list[Piece]:
    """Neighbours of which one has at most `least` mass as one; the piece `alone` stays so."""
    found: list[Piece] = []
    for k, (begin, end, mass) in enumerate(pieces):
        full = mass > least and bool(found) and found[-1][2] > least
        if not found or full or alone in (k, k - 1):
            found.append((begin, end, mass))
        else:
            first, _, before = found[-1]
            found[-1] = (first, end, before + mass)
    return found


def _few(pieces: list[Piece], cells: int) -> list[Piece]:
    """So many pieces at most: neighbours that hold least together become one."""
    found = list(pieces)
    while len(found) > cells:
        k = min(range(len(found) - 1), key=lambda k: found[k][2] + found[k + 1][2])
        found[k : k + 2] = [(found[k][0], found[k + 1][1], found[k][2] + found[k + 1][2])]
    return found


def _neat(edge: float, low: float, high: float, before: float, places: int | None) -> float:
    """An edge between two numbers of so many decimals; else a whole number where bounds are whole and cells are wide
    enough for it."""
    if places is not None:
        return between(edge, places)
    if low.is_integer() and high.is_integer() and edge > 1 and round(edge) > before and high - low >= 4:
        return float(round(edge))
    return edge


def _with_cuts(column: Column, cuts: Any) -> Column:
    if cuts is None or not isinstance(column, Quantity):
        return column
    if isinstance(cuts, int) and not isinstance(cuts, bool) and cuts >= 1:
        return replace(column, cuts=even(column, cuts).edges)
    if not isinstance(cuts, list | tuple) or not all(
        isinstance(edge, int | float) and not isinstance(edge, bool) and abs(edge) <= sys.float_info.max
        for edge in cuts
    ):
        raise UsageError(
            f"<<cuts>> are a list of numbers that increase, or a number of cells; '{column.name}' has {cuts!r}; "
            "correct it"
        )
    edges = Bins(column, tuple(float(edge) for edge in cuts)).edges
    return replace(column, cuts=edges)


def between(edge: float, places: int) -> float:
    """The middle of the two numbers of so many decimals that are next to an edge, or of it and the one above."""
    return float((Fraction(math.floor(Fraction(edge) * 10**places)) + Fraction(1, 2)) / 10**places)


def bounds_of(counts: Floats, noise: float, summary: Summary, places: int | None = None) -> tuple[float, float]:
    """The ends of the octaves, and zero, that stand out of the noise, and within six deviations of the mean. counts: as
    of `edges_of`; summary: what the survey found of the column; places: decimals that numbers have, if it is known.

    Of all octaves some are far from zero by noise alone, so five deviations count there; of an octave beside such a
    one, and so on, and of zero, half of that."""
    ends = []
    for octave in _standing(counts[2 : 2 + OCTAVES], noise):
        ends += [-math.ldexp(2.0, LOWEST + octave), -math.ldexp(1.0, LOWEST + octave)]
    for octave in _standing(counts[2 + OCTAVES : 2 + 2 * OCTAVES], noise):
        ends += [math.ldexp(1.0, LOWEST + octave), math.ldexp(2.0, LOWEST + octave)]
    if counts[1] > _BESIDE * noise or not ends:
        ends += [0.0, _ZERO]
    away = _WIDEST * summary.deviation
    low, high = max(min(ends), summary.mean - away), min(max(ends), summary.mean + away)
    low, high = (low, high) if low < high else (min(ends), max(ends))
    if places is None:
        return low, high
    # octaves hold neither their upper end nor, below zero, their lower one
    first, last = np.nextafter(low, math.inf) if low < 0 else low, np.nextafter(high, -math.inf)
    low, high = -between(-float(first), places), between(float(last), places)
    return (low, high) if low < high else (high, high + 10.0**-places)


def _standing(counts: Floats, noise: float) -> list[int]:
    """The octaves that stand out of the noise by themselves, and those that do beside them."""
    found = set(np.flatnonzero(counts > 2 * _BESIDE * noise).tolist())
    for step in (-1, 1):
        for k in sorted(found, reverse=step < 0):
            at = k + step
            while 0 <= at < len(counts) and at not in found and counts[at] > _BESIDE * noise:
                found.add(at)
                at += step
    return sorted(found)
