"""`NamingSource`: words that enough records of all owners have, opened under a promise, as a source of a plan.

A text of a column falls into one of `cells` cells by its digest, and has `VOTES` votes there, each -1 or 1: the 512
bits of its UTF-8 bytes, filled up with zeros, and 32 further bits of the digest. An owner sends the sums of its
records' votes. What parties open of all owners' sums is decided inside the MPC, cell by cell: where every vote's sum
stands out of one noise, the signs, which spell the text that more than half of the cell's records have; of every other
cell nothing (`mpc.contract.decisions`). Signs are taken for a word only where they are UTF-8 whose own digest gives
the cell and the 32 bits, and where the word may be shown (`columns.is_name`): a cell that several words share spells
none of them, and is caught. Texts that read as numbers, and those beyond `LONGEST` bytes, have no votes.

Guarantees: one record replaced changes, in each column, one cell by at most 2 in every vote, or two by 1. A cell's
margin is the least distance of its sums from where a sign turns, so margins move by (2) or (1, 1): 2 sqrt(a) in L2 with
a columns, 2 a in L1, and a sign turns in 2 a cells at most, whose margins are then 2 at most. `by_record` is of the
margins. docs/words.md has the proof; it holds whatever other owners send.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, number_of, sayable
from dpmpc.intake.hashing import BUCKETS, bucket, check_number, spelled_key
from dpmpc.intake.spelling import is_number
from dpmpc.lazy import dataclass
from dpmpc.learning.source import Floats, Ints, Invented, Opening, Source, Stage, Sum, Votes, of_means
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_words import check_words, known_words, stated_names
from dpmpc.outcome import Outcome
from dpmpc.privacy.checks import check_count, check_epsilon, check_nonnegative
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.sensitivity import Sensitivity, Weights
from dpmpc.records.columns import is_name

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.records.check import Finding, Findings
    from dpmpc.records.schema import Schema

LONGEST = 64  # bytes of a word
CHECKS = 32  # bits of its digest
VOTES = 8 * LONGEST + CHECKS
TURNS = 2.0
TOLD = 20  # words of a column that its owner is told one by one
MOST = 1 << 21  # votes of a release
WORDS = "words.txt"
STAGE = "words"  # the name of the stage
MOST_SPELLED = 0.1  # of mu^2: what words before a survey take at most; else as much as the survey


@dataclass(frozen=True)
class NamingSource(Source):
    """The columns whose words are opened, into how many cells the texts of each fall, and the epsilon of the promise
    `within` which this is a stage; 0 where it has a promise of its own. All public."""

    KIND: ClassVar[str] = "naming"
    UNITS: ClassVar[tuple[str, ...]] = ("record",)
    RESULT: ClassVar[str] = "answers.html"
    MAKES: ClassVar[str] = "words that many records have"
    PURPOSE: ClassVar[str] = "words of categories"
    DOES: ClassVar[str] = "opening words"
    REPORT: ClassVar[str] = "dpmpc.naming/1"
    columns: tuple[str, ...]
    cells: int = BUCKETS
    within: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(map(str, self.columns)))
        check_count("the number of cells", self.cells)
        check_nonnegative("the epsilon that words are within", self.within)
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise UsageError(
                f"words are opened of columns, each named once; got {', '.join(self.columns[:8]) or 'none'}; name them",
                code="unique",
            )
        if self.coordinates > MOST:
            raise UsageError(
                f"a release has at most {MOST} votes, {VOTES} a cell; {number_of(len(self.columns), 'column')} of "
                f"{self.cells} cells have {self.coordinates}; name fewer columns, or fewer cells",
                code="range",
            )

    @property
    def coordinates(self) -> int:
        return len(self.columns) * self.cells * VOTES

    @property
    def votes(self) -> Votes:
        return Votes(VOTES, TURNS, 2 * len(self.columns), self.within)

    @property
    def clip(self) -> float:
        """The L2 norm of one record's vector: what an owner clips its mean to, to be safe from its own errors."""
        return float(np.sqrt(float(VOTES * len(self.columns))))

    @property
    def spread(self) -> Sensitivity:
        """How far the margins of two records' sums lie apart."""
        a = len(self.columns)
        return Sensitivity(TURNS * a, float(np.sqrt(TURNS**2 * a)), TURNS)

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        if weights != "size":
            raise UsageError(f"votes are added up over records; got weights {weights!r}; plan again")
        return of_means(self.spread, self.clip, sizes, weights, dimension)

    def levels(
        self, neighbours: str, sizes: Sequence[int], weights: Weights, dimension: int, persons: Persons | None = None,
        places: bool = False,
    ) -> dict[str, Sensitivity]:  # fmt: skip
        """Of one record replaced alone: margins of whole owners, persons and places are not worked out."""
        return {} if places or persons is not None else {"record": self.by_record(sizes, weights, dimension)}

    def means(self, table: "Table", owner: Ints, sizes: Sequence[int]) -> Iterator[Floats]:
        for total in self.sums(table, owner, len(sizes)):
            yield self.mean_of(total, sizes)

    def sums(self, table: "Table", owner: Ints, owners: int) -> Iterator[NDArray[Any]]:
        """As `Source.sums`, one term. Cost: the texts of one column at a time."""
        total = np.zeros((owners, len(self.columns), self.cells, VOTES))
        for k, name in enumerate(self.columns):
            for (j, text), many in self._counted(table, name, owner).items():
                if (votes := votes_of(name, text)) is not None:
                    total[j, k, bucket(name, text, self.cells)] += many * votes
        yield total.reshape(owners, -1)

    def _counted(self, table: "Table", name: str, owner: Ints) -> Counter[tuple[int, str]]:
        """(owner, text) -> how many records. What reads as a number or a date has no votes, whatever stands in other
        records: one odd field makes a column of dates one of texts, and no other record's votes."""
        from dpmpc.intake.table import value_sql  # which brings a database; parties have no records

        if table[name].kind in ("number", "date"):
            return Counter()
        read = f"isinf({value_sql(table, name, read='either')})"  # of what is neither missing, nor a number, nor a date
        found = table.rows(f"CASE WHEN {table.missing(name)} OR NOT {read} THEN NULL ELSE {table.text(name)} END")
        if len(found) != len(owner):
            raise AssertionError("a record is somebody's or nobody's")
        mine = ((int(j), text) for j, (text,) in zip(owner, found, strict=True) if j >= 0 and text is not None)
        return Counter(mine)

    def held_against(self, table: "Table", schema: "Schema | None", sizes: Sequence[int] = ()) -> "Findings":
        """As `Source.held_against`: also which words these records vote for, and how many have each."""
        found = super().held_against(table, schema, sizes)
        return replace(found, found=(*found.found, *self.votes_told(table)))

    def votes_told(self, table: "Table") -> "list[Finding]":
        """For the owner of these records alone, of each column: its words, where each falls and how many records have
        it, the most first; and how many records have none."""
        from dpmpc.records.check import Finding

        told, everybody = [], np.zeros(table.n, dtype=np.int64)
        for name in (each for each in self.columns if each in table):
            counted, there = self._counted(table, name, everybody), Counter[str]()
            for (_, text), many in counted.items():
                if votes_of(name, text) is not None:
                    there[spelled_key(text)] += many
            shown_ones = [
                f"'{word}' [bucket {bucket(name, word, self.cells)}] x {many:,}"
                for word, many in sorted(there.items(), key=lambda pair: (-pair[1], pair[0]))[:TOLD]
            ]
            text = f"would vote for {', '.join(shown_ones)}" if there else "no record has a word to vote for"
            text += f" and {number_of(len(there) - TOLD, 'word')} more" * (len(there) > TOLD)
            if (silent := table.n - there.total()) and there:
                text += f"; {number_of(silent, 'record')} of {table.n:,} vote for none: missing, a number or too long"
            told.append(Finding("note" if there else "warning", name, text))
        return told

    def words(self, signs: Floats) -> dict[str, dict[int, str]]:
        """Column -> cell -> its word, of what was opened (coordinates,), positive and negative numbers or 0."""
        bits = np.asarray(signs).reshape(len(self.columns), self.cells, VOTES)
        found: dict[str, dict[int, str]] = {}
        for k, name in enumerate(self.columns):
            each = {int(at): word_of(name, int(at), self.cells, bits[k, at]) for at in np.flatnonzero(bits[k, :, 0])}
            found[name] = {at: word for at, word in each.items() if word is not None}
        return found

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def about(self) -> list[str]:
        return [
            f"opens words that many records of all owners together have, of {', '.join(self.columns)}",
            "what is decided of each word is decided inside the MPC; of others nothing is opened",
        ]

    def invented(self, schema: "Schema | None") -> Iterator[tuple[str, Invented]]:
        yield from ((name, ["a", "b", "c"]) for name in self.columns)

    def outcome(self, opened: Opening) -> Outcome:
        """The words, column by column, and a list of them for `--word-list`."""
        found = self.words(opened.last.total)
        passed = int(np.count_nonzero(np.asarray(opened.last.total).reshape(-1, VOTES)[:, 0]))
        named = sum(map(len, found.values()))
        lines = [said(name, list(words.values())) for name, words in found.items()]
        if passed > named:
            lines.append(f"{number_of(passed - named, 'cell')} stood out and spelled no word that may be shown.")
        listed = dict.fromkeys(word for words in found.values() for word in words.values())
        section = {"words": {name: list(words.values()) for name, words in found.items()}, "unreadable": passed - named}
        return Outcome(
            title="Words that many records have", about=(opened.guarantee,), section=section, lines=tuple(lines),
            files={WORDS: "".join(f"{word}\n" for word in listed)},
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "cells": self.cells, **({"within": self.within} if self.within else {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "NamingSource":
        return super().from_json(dict(value))


def said(name: str, words: list[str]) -> str:
    """A line on a column."""
    return f"{sayable(name)}: {', '.join(words) if words else 'no word stands out'}"


def votes_of(name: str, text: str) -> Floats | None:
    """(VOTES,) of -1 and 1; None for a text that has none."""
    key = spelled_key(text)
    raw = key.encode("utf-8", "surrogatepass")
    if not raw or len(raw) > LONGEST or is_number(key):
        return None
    whole = raw.ljust(LONGEST, b"\0") + check_number(name, key).to_bytes(CHECKS // 8, "big")
    return np.where(np.unpackbits(np.frombuffer(whole, np.uint8)), 1.0, -1.0)


def word_of(name: str, cell: int, cells: int, votes: Floats) -> str | None:
    """The word that the votes of a cell spell; None where they spell none, or one that is not shown."""
    raw = np.packbits(np.asarray(votes) > 0).tobytes()
    try:
        word = raw[:LONGEST].rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not word or spelled_key(word) != word or bucket(name, word, cells) != cell:
        return None
    if check_number(name, word) != int.from_bytes(raw[LONGEST:], "big"):
        return None
    return word if is_name(word) and not is_number(word) else None


@dataclass(frozen=True)
class WordsFirst:
    """Words as a stage before a survey: of which columns, and what they come to alone at the plan's delta, whose
    epsilon is `within`. All public."""

    columns: tuple[str, ...]
    epsilon: float
    within: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_epsilon(self.within)
        object.__setattr__(self, "columns", tuple(map(str, self.columns)))

    @property
    def source(self) -> NamingSource:
        """What is sent. Errors: as `NamingSource`."""
        return NamingSource(self.columns, within=self.within)

    @property
    def stage(self) -> Stage:
        """The stage."""
        return Stage(STAGE, self.source, self.epsilon)


def words_first(
    columns: Sequence[str], mu2: float, part: float, delta: float, within: float
) -> tuple[WordsFirst | None, float]:
    """(Words of these columns before a survey, what they leave of the promise), `mu2` before; None of no columns. They
    take as much of it as the survey, `part`, and `MOST_SPELLED` at most. `within`: the epsilon of the promise."""
    if not columns:
        return None, mu2
    mine = min(MOST_SPELLED, part)
    alone = epsilon_of_mu((mu2 * mine) ** 0.5, delta)
    return WordsFirst(tuple(dict.fromkeys(columns)), alone, within), mu2 * (1 - mine)


@dataclass(frozen=True, kw_only=True)
class NamedColumns:
    """Where the names come from of what a survey finds in columns; all public. `named`: the columns whose buckets are
    named where words are found, by `words` beside those that everybody knows; `spelling`: words that are opened first,
    while they are still to be; `spelled`: (column, (bucket, word)) that were opened."""

    named: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    spelling: WordsFirst | None = None
    spelled: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.spelling, dict):  # out of a file
            object.__setattr__(self, "spelling", WordsFirst(**self.spelling))
        if not isinstance(self.spelling, WordsFirst | None):
            raise UsageError(f"words before a survey are an object; got {self.spelling!r}; plan again")
        if isinstance(self.spelled, dict):
            of = [(name, tuple((int(k), str(word)) for k, word in each.items())) for name, each in self.spelled.items()]
            object.__setattr__(self, "spelled", tuple(of))
        for name in ("named", "words"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        _check_spelled(self.spelled)
        if self.words and not self.named:
            raise UsageError("words are tried as names of columns; none is named; say <<named>>, or give no words")
        check_words(self.words)

    def check_named(self, found: Collection[str]) -> None:
        """Errors: as `check_named`, of all columns that are named here."""
        every = (*self.named, *(() if self.spelling is None else self.spelling.columns), *dict(self.spelled))
        check_named(every, found)

    def up_to(self, survey: Stage) -> tuple[Stage, ...]:
        """The stages that are still to come: words, where they are to be opened, and the survey."""
        return (survey,) if self.spelling is None else (self.spelling.stage, survey)

    @property
    def about_words(self) -> list[str]:
        """What is opened before the survey, a line each."""
        return [] if self.spelling is None else self.spelling.source.about

    def told(self, opened: Sum) -> Self:
        """The same with the words that their stage has opened."""
        assert self.spelling is not None
        found = self.spelling.source.words(opened.total)
        return replace(self, spelling=None, spelled=tuple((name, tuple(each.items())) for name, each in found.items()))

    def names_of(self, asked: Survey, total: Floats, noise: float) -> dict[str, tuple[tuple[int, str], ...]]:
        """Column -> (bucket, word) of what a survey has opened; a word that was opened before it is one that most of
        its bucket's records have, for sure."""
        named = asked.named(total, noise, (*known_words(), *self.words)) if self.named else {}
        names = {name: dict(stated_names(each)) for name, each in named.items()}
        for name, each in self.spelled:
            names[name] = names.get(name, {}) | dict(each)
        return {name: tuple(sorted(each.items())) for name, each in names.items()}

    def names_to_json(self) -> dict[str, Any]:
        """Its fields as JSON values, of those that say something."""
        made: dict[str, Any] = {name: list(getattr(self, name)) for name in ("named", "words") if getattr(self, name)}
        if self.spelling is not None:
            made["spelling"] = {**asdict(self.spelling), "columns": list(self.spelling.columns)}
        if self.spelled:
            made["spelled"] = {name: {str(at): word for at, word in each} for name, each in self.spelled}
        return made


def _check_spelled(spelled: Sequence[tuple[str, tuple[tuple[int, str], ...]]]) -> None:
    """Errors: UsageError for a word that no release could have opened there: whoever writes a plan would say it."""
    for name, each in spelled:
        for cell, word in each:
            votes = votes_of(name, word)
            if votes is None or word_of(name, cell, BUCKETS, votes) != word:
                raise UsageError(
                    f"words that were opened are those of their cells, and may be shown; '{sayable(word)}' of "
                    f"'{sayable(name)}' is none of cell {cell}; plan again",
                    code="plan",
                )


def check_named(every: Sequence[str], found: Collection[str]) -> None:
    """Errors: UsageError for names of a column that is none of those of which a survey finds what texts they hold."""
    if odd := [name for name in every if name not in found]:
        raise UsageError(
            f"words are named of columns of texts whose values a survey is to find; of '{sayable(odd[0])}' they are "
            "stated, or it is none; leave it out of <<named>> and <<spell>>",
            code="column",
        )


def check_nothing_named(*said: Sequence[str]) -> None:
    """Of a run without a survey. Errors: UsageError where names of columns are asked for, by any of these."""
    if asked := [name for each in said for name in each]:
        raise UsageError(
            f"words are named of columns whose values a survey finds; got '{sayable(asked[0])}', and this run has none "
            "as its columns are stated, or its budget is too small; leave <<named>>, <<spell>> and words for them "
            "out, or <<schema>> and <<bounds>>, or raise <<epsilon>>",
            code="column",
        )


def naming_in(source: Source) -> NamingSource:
    """A source that opens words, as one. Errors: UsageError for any other."""
    if not isinstance(source, NamingSource):
        raise UsageError(f"words are of what a release of them opened; this run is of {source.KIND}; name another")
    return source
