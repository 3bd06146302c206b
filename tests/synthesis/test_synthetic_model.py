"""What a synthetic table is made of, against independent routes: brute force, optimisers, closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpmpc.errors import UsageError
from dpmpc.outcome import Level, Number
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.statistics.compile import axis_of
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.pooled import pooled
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis import asking, table
from dpmpc.synthesis.constraints import Constraints
from dpmpc.synthesis.model import fitted, on_simplex, raked
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import draw, expected_errors, model_of, structure
from dpmpc.synthesis.tree import clique_tree, dependence, shrunk
from dpmpc.synthesis.values import NoisyMoments, _numbers
from tests.refusals import refuses

COLUMNS = Columns(
    (
        category("sex", ("F", "M")),
        category("role", ("wife", "husband", "child")),
        Quantity("age", 18.0, 90.0, (18.0, 30.0, 50.0, 90.0)),
        category("ill", ("no", "yes")),
    )
)


def records_of(rng: np.random.Generator, n: int) -> RecordFields:
    """Records whose role follows sex, and illness age."""
    sex = rng.integers(0, 2, n)
    role = np.where(rng.random(n) < 0.3, 2, sex)
    age = np.rint(rng.uniform(18, 90, n))
    ill = (rng.random(n) < age / 120).astype(np.int64)
    age[rng.random(n) < 0.05] = np.nan
    return RecordFields(n, dict(zip(COLUMNS.columns, (sex, role, age, ill), strict=True)))


def opened_of(tables: Tables, records: RecordFields, sigma: float, rng: np.random.Generator) -> Opened:
    total = tables.layout.encode(records)[0]
    return tables.opened(total + rng.normal(0, 1, len(total)) * sigma, sigma, (records.n,))


@pytest.mark.parametrize("seed", range(5))
def test_the_simplex_is_met_at_its_nearest_point(seed: int) -> None:
    """By the conditions of Karush, Kuhn and Tucker: all positive entries moved by the same, the others by less."""
    values = np.random.default_rng(seed).normal(1, 4, (4, 3))
    found = on_simplex(values, 7.0)
    moved = (values - found)[found > 0]
    assert found.min() >= 0 and found.sum() == pytest.approx(7.0)
    assert np.ptp(moved) < 1e-9 and (values[found == 0] <= moved[0] + 1e-9).all()


def entropy_given(margins: list[tuple[tuple[int, ...], Floats]], shape: tuple[int, ...]) -> Floats:
    """The law of greatest entropy with some margins, by a general optimiser of the dual: another route than fitting."""

    def law(x: Floats) -> Floats:
        power, at = np.zeros(shape), 0
        for axes, margin in margins:
            part = x[at : at + margin.size].reshape(margin.shape)
            power = power + np.expand_dims(part, tuple(k for k in range(len(shape)) if k not in axes))
            at += margin.size
        found = np.exp(power - power.max())
        return np.asarray(found / found.sum())

    def dual(x: Floats) -> tuple[float, Floats]:
        p = law(x)
        gaps = [p.sum(axis=tuple(k for k in range(len(shape)) if k not in axes)) - m for axes, m in margins]
        power, at = np.zeros(shape), 0
        for axes, margin in margins:
            part = x[at : at + margin.size].reshape(margin.shape)
            power = power + np.expand_dims(part, tuple(k for k in range(len(shape)) if k not in axes))
            at += margin.size
        value = math.log(np.exp(power).sum()) - sum(
            float((x[a : a + m.size] * m.ravel()).sum())
            for a, (_, m) in zip(np.cumsum([0, *(m.size for _, m in margins)]), margins, strict=False)
        )
        return float(value), np.concatenate([gap.ravel() for gap in gaps])

    start = np.zeros(sum(m.size for _, m in margins))
    found = optimize.minimize(
        dual, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    )
    return law(found.x)


FAMILIES = {
    "a tree": (("a", ()), ("b", ("a",)), ("c", ("b",)), ("d", ("b",))),
    "cliques": (("a", ()), ("b", ("a",)), ("c", ("a", "b")), ("d", ("b", "c"))),
}


@pytest.mark.parametrize("families", list(FAMILIES))
@pytest.mark.parametrize("target", [None, "t"])
def test_the_model_has_the_greatest_entropy_with_the_tables_of_the_tree(target: str | None, families: str) -> None:
    rng = np.random.default_rng(3)
    shape = (3, 4, 2, 3, 2)  # a, b, c, d, t
    joint = rng.dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)
    names = ("a", "b", "c", "d", "t")
    tree = FAMILIES[families] if target else (*FAMILIES[families], ("t", ("d",)))
    edges = [(parent, child) for child, parents in tree for parent in parents]
    edges += [(name, "t") for name in "abcd"] if target else []
    place = {name: k for k, name in enumerate(names)}

    def margin(*kept: str) -> Floats:
        out = joint.sum(axis=tuple(k for k in range(5) if names[k] not in kept))
        order = sorted(kept, key=lambda name: place[name])
        return np.asarray(out.transpose([order.index(name) for name in kept]))

    model = fitted(names, target, tree, {n: margin(n) for n in names}, {e: margin(*e) for e in edges})
    best = entropy_given([(tuple(place[n] for n in e), margin(*e)) for e in edges], shape)
    found = np.ones(shape)
    for child, parents, law in model.laws:
        for cell in itertools.product(*(range(size) for size in shape)):
            where = (*(cell[place[p]] for p in parents), cell[place[child]])
            found[cell] *= law[where]
    assert found.sum() == pytest.approx(1.0)
    assert np.abs(found - best).sum() < 1e-3
    assert np.abs(joint - best).sum() > 0.1  # the tables do not say all


def test_raking_keeps_margins_and_zeros() -> None:
    rng = np.random.default_rng(1)
    table = np.maximum(rng.normal(2, 3, (5, 4)), 0)
    table[2] = 0
    rows, columns = rng.dirichlet(np.ones(5)) * 100, rng.dirichlet(np.ones(4)) * 100
    found = raked(table, rows, columns)
    assert np.allclose(found.sum(axis=1), rows, atol=0.01) and np.allclose(found.sum(axis=0), columns, atol=0.01)


def test_without_second_parents_the_tree_is_the_heaviest_of_all() -> None:
    rng = np.random.default_rng(2)
    names = list("abcde")
    pairs = list(itertools.combinations(names, 2))
    for _ in range(20):
        weight = dict(zip(pairs, rng.random(len(pairs)), strict=True))
        found = clique_tree(names, weight, lambda a, b: 0.0, lambda clique: len(clique) < 3)
        assert [len(parents) for _, parents in found] == [0, 1, 1, 1, 1]
        edges = [(parents[0], child) for child, parents in found[1:]]
        value = sum(weight[a, b] if (a, b) in weight else weight[b, a] for a, b in edges)
        heaviest = max(
            sum(weight[e] for e in some)
            for some in itertools.combinations(pairs, len(names) - 1)
            if _connected(names, some)
        )
        assert value == pytest.approx(heaviest)


def test_second_parents_are_joined_stand_out_and_make_no_clique_too_large() -> None:
    rng = np.random.default_rng(3)
    names = list("abcdefg")
    for _ in range(20):
        weight = {pair: float(rng.random()) for pair in itertools.combinations(names, 2)}
        found = clique_tree(names, weight, lambda a, b: 0.3, lambda clique: "g" not in clique)
        seen: dict[str, tuple[str, ...]] = {}
        for child, parents in found:  # parents first, and joined
            assert child not in seen and set(parents) <= set(seen) and (not seen or 1 <= len(parents) <= 2)
            if len(parents) == 2:
                a, b = parents
                assert a in seen[b] or b in seen[a]
                assert "g" not in (child, a, b)
                assert min(weight[tuple(sorted((child, p)))] for p in parents) > 0.3  # type: ignore[index]
            seen[child] = parents
        assert set(seen) == set(names)
    assert all(len(parents) < 2 for _, parents in clique_tree(names, weight, lambda a, b: 1.0, lambda clique: True))
    assert clique_tree(["a"], {}, lambda a, b: 0.0, lambda clique: True) == (("a", ()),)


def test_no_tree_of_cliques_has_more_cells_than_was_planned() -> None:
    """All 2-trees of five columns, by every order of joining them."""
    rng = np.random.default_rng(4)
    for _ in range(8):
        levels = [[f"l{j}" for j in range(rng.integers(2, 30))] for _ in range(5)]
        columns = Columns(tuple(category(f"c{k}", each) for k, each in enumerate(levels)))
        cells = asking.cells_of(columns)
        sizes = list(cells.values())
        most = max(sum(sizes[a] * sizes[b] for a, b in edges) for edges in two_trees(5))
        planned = asking.widest(columns, None)
        assert sum(cells[a] * cells[b] for a, b in planned) == most and len(planned) == 7


def two_trees(n: int) -> set[frozenset[tuple[int, int]]]:
    """The edges of every 2-tree of n columns."""
    found = {frozenset({pair}) for pair in itertools.combinations(range(n), 2)}
    for _ in range(n - 2):
        found = {
            edges | {(min(a, child), max(a, child)), (min(b, child), max(b, child))}
            for edges in found
            for child in set(range(n)) - {x for edge in edges for x in edge}
            for a, b in edges
        }
    return found


def _connected(names: list[str], edges: tuple[tuple[str, str], ...]) -> bool:
    seen = {names[0]}
    for _ in names:
        seen |= {x for edge in edges if seen & set(edge) for x in edge}
    return len(seen) == len(names)


def test_what_noise_feigns_is_no_dependence() -> None:
    """Of independent columns the measure is near 0 in the mean of 400, whatever the noise: less than a tenth of what
    the noise alone would make it (20 deviations of the mean: false alarms below 1e-80)."""
    rng = np.random.default_rng(4)
    exact = np.outer(rng.dirichlet(np.full(12, 5)), rng.dirichlet(np.full(9, 5))) * 5000
    for noise in (5.0, 20.0):
        noisy = [exact + rng.normal(0, noise, exact.shape) for _ in range(400)]
        off, feigned = (float(np.mean([dependence(table, s) for table in noisy])) for s in (noise, 0.0))
        assert abs(off) < 0.1 * feigned and 0.03 < feigned
    assert dependence(np.diag(exact.sum(axis=0)), 5.0) > 0.6


def test_shrinking_leaves_what_stands_out_and_little_else() -> None:
    """Of 60 tables each: of independent columns a third of the squared error is left, of dependent ones six tenths (a
    sum of 5,280 squares is off by a fiftieth), and what noise cannot touch stays."""
    rng = np.random.default_rng(14)
    rows, columns = rng.dirichlet(np.full(12, 5)), rng.dirichlet(np.full(9, 5))
    away = np.outer(np.sin(np.arange(12.0)), np.cos(np.arange(9.0)))
    free = np.outer(rows, columns) * 20_000
    for exact, most in ((free, 0.35), (free + 60 * (away - away.mean(0) - away.mean(1)[:, None] + away.mean()), 0.6)):
        raw, left = 0.0, 0.0
        for _ in range(60):
            noisy = exact + rng.normal(0, 25, exact.shape)
            raw += float(((noisy - exact) ** 2).sum())
            left += float(((shrunk(noisy, 25.0) - exact) ** 2).sum())
        assert left < most * raw
    strong = np.diag(np.arange(3.0, 9.0)) * 1000
    assert np.abs(shrunk(strong + rng.normal(0, 1, strong.shape), 1.0) - strong).max() < 12
    assert (shrunk(strong, 0.0) == strong).all() and shrunk(np.ones((1, 3)), 5.0).sum() == pytest.approx(3.0)


def test_the_noise_beside_the_margins_has_the_deviation_that_is_said() -> None:
    """A chi-square over the centred cells of all pairs in 300 releases: false alarms below 1e-9."""
    rng = np.random.default_rng(15)
    records = records_of(rng, 4000)
    tables = asking.first(COLUMNS)
    exact = Noisy(COLUMNS, tables.opened(tables.layout.encode(records)[0], 0.0, (4000,)))
    pairs = list(itertools.combinations(COLUMNS.names, 2))
    squares, freedom = 0.0, 0
    for _ in range(300):
        noisy = Noisy(COLUMNS, opened_of(tables, records, 6e6, rng))
        for pair in pairs:
            off = noisy.raw(pair) - exact.raw(pair)
            off = off - off.mean(0) - off.mean(1)[:, None] + off.mean()
            squares += float((off**2).sum()) / noisy.apart(pair) ** 2
            freedom += (off.shape[0] - 1) * (off.shape[1] - 1)
    low, high = stats.chi2.ppf([5e-10, 1 - 5e-10], freedom)
    assert low < squares < high < 1.2 * freedom


def test_releases_are_pooled_by_their_precision() -> None:
    """The pooled error has the variance 1/(1/v1 + 1/v2): a chi-square over all cells, false alarms below 1e-9; a mean
    without weights would have twice that."""
    rng = np.random.default_rng(5)
    records = records_of(rng, 4000)
    first, second = asking.first(COLUMNS), asking.second(COLUMNS, (("sex", "role"), ("age", "ill")))
    exact = {
        block: first.opened(first.layout.encode(records)[0], 0.0, (4000,)).raw(block) for block in first.layout.blocks
    }
    errors, precise = [], []
    for _ in range(60):
        a, b = opened_of(first, records, 6e6, rng), opened_of(second, records, 2e6, rng)
        both = pooled([a, b])
        for block in second.layout.blocks:
            if block in exact:
                errors.append(((both.raw(block) - exact[block]) / both.deviation(block)).ravel())
                precise.append(both.deviation(block) ** -2 * 1 / (a.deviation(block) ** -2 + b.deviation(block) ** -2))
    z = np.concatenate(errors)
    low, high = stats.chi2.ppf([5e-10, 1 - 5e-10], len(z))
    assert low < float(z @ z) < high < 1.9 * len(z)
    assert np.allclose(precise, 1, atol=1e-4)


def test_drawn_tables_are_within_one_a_group_of_what_is_expected() -> None:
    rng = np.random.default_rng(6)
    joint = rng.dirichlet(np.ones(12)).reshape(3, 4)
    model = fitted(
        ("a", "b"), None, (("a", ()), ("b", ("a",))), {"a": joint.sum(1), "b": joint.sum(0)}, {("a", "b"): joint}
    )
    drawn = model.draw(5000, rng)
    assert np.abs(model.table(("a", "b"), drawn) - joint * 5000).max() < 2.5  # a sample's deviation would be about 20


def test_numbers_lie_in_their_cells_and_keep_the_moments() -> None:
    rng = np.random.default_rng(7)
    column = Quantity("x", 0.0, 100.0, (0.0, 10.0, 50.0, 100.0))
    axis = axis_of("x", Columns((column,)))
    true = rng.beta(2, 5, 60_000) * 100
    cells = axis.place(RecordFields(len(true), {column: true}))
    t = true / 50 - 1
    found = _numbers(axis, cells, NoisyMoments(float(t.mean()), float((t**2).mean()), 1e-9, 1e-9), 2, rng)
    assert (axis.place(RecordFields(len(true), {column: found})) == cells).mean() > 0.999
    even = _numbers(axis, cells, None, 2, rng)
    assert abs(found.mean() - true.mean()) < 0.15 < 1.0 < abs(even.mean() - true.mean())
    assert abs(found.std() - true.std()) < 0.15
    whole = _numbers(axis, cells, None, 0, rng)
    assert (whole == np.rint(whole)).all() and whole.min() == 0 and whole.max() == 100


def test_impossible_combinations_are_never_drawn_wherever_they_are() -> None:
    rng = np.random.default_rng(8)
    records = records_of(rng, 3000)
    lines = ["sex = M and role = wife", "age in 18..30 and role = husband", "ill = yes and sex = F"]
    zeros = Constraints.of(lines, COLUMNS)
    opened = opened_of(asking.first(COLUMNS), records, 3e7, rng)
    noisy = Noisy(COLUMNS, opened, zeros)
    for target in (None, "ill", "age"):
        shape = structure(noisy, target)
        drawn = draw(model_of(noisy, shape), noisy, 3000, rng)
        assert not ((drawn["sex"] == 1) & (drawn["role"] == 0)).any()
        assert not ((drawn["age"] == 1) & (drawn["role"] == 1)).any()
        assert not ((drawn["ill"] == 1) & (drawn["sex"] == 0)).any()
    free = Noisy(COLUMNS, opened)
    drawn = draw(model_of(free, structure(free, None)), free, 3000, rng)
    assert ((drawn["ill"] == 1) & (drawn["sex"] == 0)).any()
    up_to = Constraints.of(["age in 18..29"], COLUMNS).of_one("age", {"age": axis_of("age", COLUMNS)})
    assert up_to.tolist() == [True, True, False, False, False, False]  # below its bounds a number is written as 18
    for bad in ("sex = M and role = wife and ill = no", "age = 3 or 4", "size = 3", "age in 20..30", "age in 18..40"):
        with pytest.raises(UsageError):
            Constraints.of([bad], COLUMNS)


def test_constraints_that_leave_no_row_are_told_by_trying_all_rows() -> None:
    """Of random constraints of four small columns, where each pair alone may look harmless."""
    columns = Columns(tuple(category(name, ("x", "y")) for name in "abcd"))
    rng, left = np.random.default_rng(5), [0, 0]
    pairs = list(itertools.combinations("abcd", 2))
    for _ in range(300):
        lines = []
        for _ in range(int(rng.integers(4, 12))):
            (a, b), (u, v) = pairs[rng.integers(6)], rng.choice(["x", "y"], 2)
            lines.append(((a, str(u)), (b, str(v))))
        rows = [dict(zip("abcd", row, strict=True)) for row in itertools.product("xy", repeat=4)]
        possible = any(all(not all(row[name] == value for name, value in line) for line in lines) for row in rows)
        left[possible] += 1
        spelled = [" and ".join(f"{name} = {value}" for name, value in line) for line in lines]
        if possible:
            Constraints.of(spelled, columns)
        else:
            with refuses("together", setting="constraints"):
                Constraints.of(spelled, columns)
    assert min(left) > 50


def test_rows_that_are_possible_and_rare_are_drawn_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is fitted without the constraints, and draws once: what is left is filled with rows that meet them."""
    monkeypatch.setattr(table, "_ROUNDS", 0)
    rng = np.random.default_rng(6)
    records = records_of(rng, 4000)
    opened = opened_of(asking.first(COLUMNS), records, 0.0, rng)
    free = Noisy(COLUMNS, opened)
    model = model_of(free, structure(free, None))
    zeros = [
        "sex = F and role = wife",
        "sex = F and role = child",
        "sex = M and role = child",
        "sex = M and age in 30..90",
    ]
    noisy = Noisy(COLUMNS, opened, Constraints.of(zeros, COLUMNS))
    drawn = draw(model, noisy, 3000, rng)
    assert (
        len(drawn["sex"]) == 3000
        and not (noisy.zeros.of_two(("sex", "role"), noisy.axes)[drawn["sex"], drawn["role"]]).any()
    )


def test_expected_errors_are_of_the_size_that_errors_have() -> None:
    """The mean over pairs and 12 releases of the true error lies within 0.6 and 1.6 of what was expected; what is
    expected without noise is far less."""
    rng = np.random.default_rng(9)
    records = records_of(rng, 5000)
    axes = {name: axis_of(name, COLUMNS) for name in COLUMNS.names}
    cells = {name: axis.place(records) for name, axis in axes.items()}
    true, said = [], []
    for _ in range(12):
        opened = opened_of(asking.first(COLUMNS), records, 4e7, rng)
        noisy = Noisy(COLUMNS, opened)
        shape = structure(noisy, "ill")
        model = model_of(noisy, shape)
        drawn = draw(model, noisy, 5000, rng)
        for error in expected_errors(
            noisy, [opened], shape, drawn, rng, lambda again, _, known: model_of(again, known)
        ):
            off = model.table(error.pair, drawn) - model.table(error.pair, cells)
            true.append(0.5 * np.abs(off).sum() / 5000)
            said.append(error.whole)
    assert 0.6 < np.mean(true) / np.mean(said) < 1.6


def test_intervals_of_both_releases_hold_what_the_records_say() -> None:
    """Of 60 synthetic tables, each with a structure of its own noise: intervals of counts, a mean and a deviation hold
    the records' value in at least as many as the binomial law at 0.95 has in all but a part of 1e-9 of cases (five
    lines: false alarms below 1e-8); with intervals a third as wide they do not."""
    rng = np.random.default_rng(21)
    records = records_of(rng, 4000)
    asked = Tables.of(COLUMNS, ["table(sex, role)", "table(age, ill)", "mean(age)", "sd(age)"])
    chosen = ((0, 0), (0, 1), (1, 4), (2, 0), (3, 0))

    def numbers(opened: Opened) -> list[Number]:
        answers = asked.answers_from(opened, Level())
        return [answers[question].lines[line].number for question, line in chosen]

    def both(noise: float) -> Opened:
        first = opened_of(asking.first(COLUMNS), records, noise, rng)
        shape = structure(Noisy(COLUMNS, first), "ill")
        return pooled([first, opened_of(asking.second(COLUMNS, shape.edges, "ill"), records, noise, rng)])

    exact = [each.estimate for each in numbers(both(1e-3))]
    found = [numbers(both(2e7)) for _ in range(60)]
    least = stats.binom.ppf(1e-9, 60, 0.95)
    for k, value in enumerate(exact):
        assert value is not None
        off = [(each[k].estimate - value, each[k].high - each[k].low) for each in found]  # type: ignore[operator]
        assert sum(each[k].low <= value <= each[k].high for each in found) >= least  # type: ignore[operator]
        assert sum(abs(away) <= width / 6 for away, width in off) < 54
