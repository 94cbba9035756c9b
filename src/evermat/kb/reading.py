"""Reading a knowledge base: facts, answers, counts and explanations.

There are two ways to hold facts, and a reader for each: as they are, closures perhaps
by what they start from; or one fact for all that differ in equal constants only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from evermat.algebra import Region
from evermat.columns import as_terms, empty_table, joined_tables, term_table
from evermat.errors import EvermatError
from evermat.explain.explanation import Explanation
from evermat.kb.equality_explanations import explain_rewritten
from evermat.kb.equality_modes import with_equality
from evermat.kb.equality_queries import ask_representatives, given_table
from evermat.kb.explanations import explain
from evermat.kb.materialisation import Materialisation
from evermat.kb.queries import ask, question_of
from evermat.lang.syntax import SAME_AS, TRIPLE, Atom, Term, Variable
from evermat.maintenance.proof import rows_in
from evermat.results.change import distant_relation, read_relation, split
from evermat.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.algebra import Facts
    from evermat.kb.equality_materialisation import EqualityMaterialisation
    from evermat.kb.queries import Question
    from evermat.lang.catalogue import Catalogue, Predicate
    from evermat.lang.syntax import Rule
    from evermat.maintenance.proof import Fact
    from evermat.results.change import Sort
    from evermat.values import Constant


class NoCountersError(EvermatError, RuntimeError):
    """Counters were asked for that are not kept."""

    code: ClassVar[str] = "EM556"


class NoExplanationError(EvermatError, NotImplementedError):
    """An explanation that cannot be given."""

    code: ClassVar[str] = "EM562"


@dataclass(frozen=True, slots=True)
class Asked:
    """A fact that is to be explained, and how.

    Attributes:
        fact: the fact.
        own: the rules that were written.
        prefixes: for showing IRIs.
        derivations: how many rule instances that derive the fact are shown.
        limit: how many rule instances may be looked at.
    """

    fact: Fact
    own: Sequence[Rule]
    prefixes: Mapping[str, str]
    derivations: int = 0
    limit: int | None = None


class Reader(ABC):
    """Reads what holds.

    Attributes:
        catalogue: the predicates that can be asked for.
    """

    catalogue: Catalogue

    @abstractmethod
    def answer(self, question: Question, *, raw: bool = False) -> Result:
        """The answers to a question; `raw`: about representatives."""

    def match(self, atoms: tuple[Atom, ...], names: Sequence[str]) -> pa.Table:
        """The distinct values of variables for which all atoms hold, as term columns.

        Atoms of unknown predicates do not hold. Without variables there is one empty
        row for yes, and none for no.
        """
        if any(atom.predicate not in self.catalogue for atom in atoms):
            return empty_table(len(names))
        question = question_of(atoms, text="a pattern", catalogue=self.catalogue)
        return self.answer(question).to_terms().select(list(names))

    @abstractmethod
    def facts(self, known: Predicate, sort: Sort) -> Result:
        """The facts of a predicate."""

    @abstractmethod
    def count(self, known: Predicate) -> int:
        """How many facts a predicate has."""

    @abstractmethod
    def contains(self, known: Predicate, row: pa.Table) -> bool:
        """Whether a fact holds."""

    @abstractmethod
    def counters(self, known: Predicate) -> Result:
        """The facts of a predicate with the number of their derivations."""

    @abstractmethod
    def representatives(self) -> pa.Table:
        """The constants that are equal to others, each with what stands for it."""

    @abstractmethod
    def explain(self, asked: Asked) -> Explanation:
        """Why a fact holds."""

    @abstractmethod
    def sizes(self) -> dict[str, dict[str, int]]:
        """The sizes of predicates, as `Stats` has them."""


class PlainReader(Reader):
    """Reads facts that are held as they are, or by closures."""

    def __init__(
        self, kept: Materialisation, catalogue: Catalogue, *, counters: bool
    ) -> None:
        self._kept = kept
        self.catalogue = catalogue
        self._has_counters = counters

    def answer(self, question: Question, *, raw: bool = False) -> Result:
        """The answers to a question; everything represents itself."""
        del raw
        kept, is_scratching = self._kept, bool(question.auxiliaries)
        patterns = question.patterns
        with kept.reading.facts(patterns, is_scratching=is_scratching) as facts:
            table = ask(kept.engine, question, facts)
        return Result(table, question.columns)

    def facts(self, known: Predicate, sort: Sort) -> Result:
        """The facts of a predicate."""
        name, engine = known.name, self._kept.engine
        chosen: dict[str, Facts] = {
            "all": engine.materialised,
            "explicit": engine.explicit,
            "derived": engine.materialised - engine.explicit,
        }
        region = Region(frozenset({name}))
        snapshot = engine.snapshot(chosen[sort].within(region))
        rest = [] if sort == "explicit" else list(self._kept.reading.rest(name))
        distant = None if rest else distant_relation(snapshot, name)
        if distant is not None:
            return Result(distant, known.columns, predicate=name)
        table = read_relation(snapshot, name, known.arity)
        parts = [read_relation(each, name, known.arity) for each in rest]
        return Result(joined_tables([table, *parts]), known.columns, predicate=name)

    def count(self, known: Predicate) -> int:
        """How many facts a predicate has."""
        return self._kept.reading.size(known.name)

    def contains(self, known: Predicate, row: pa.Table) -> bool:
        """Whether a fact holds."""
        return self._kept.reading.contains(known.name, row)

    def counters(self, known: Predicate) -> Result:
        """The facts of a predicate with the number of their derivations."""
        if not self._has_counters:
            raise NoCountersError(
                "this knowledge base keeps no counters",
                help="make it with `counters=True`, which is the default",
            )
        columns = (*known.columns, "c_nr", "c_r")
        if not self.count(known):
            # Engines do not know a predicate of which there was never a fact.
            return Result(empty_table(len(columns)), columns)
        table = self._kept.reading.counts(known.name)
        terms = [as_terms(column) for column in table.columns]
        return Result(pa.table(terms, names=list(columns)), columns)

    def representatives(self) -> pa.Table:
        """Nothing: everything represents itself."""
        return empty_table(2)

    def explain(self, asked: Asked) -> Explanation:
        """Why a fact holds."""
        return explain(
            self._kept,
            asked.fact,
            own=asked.own,
            prefixes=asked.prefixes,
            derivations=asked.derivations,
            limit=asked.limit,
        )

    def sizes(self) -> dict[str, dict[str, int]]:
        """The sizes of predicates; closures that are held count in full."""
        kept = self._kept
        sizes = _stored_sizes(kept, self.catalogue)
        for name in kept.reading.held.intersection(sizes):
            sizes[name]["facts"] = kept.reading.size(name)
        return sizes


class RewrittenReader(Reader):
    """Reads facts about representatives, multiplied out."""

    def __init__(self, kept: EqualityMaterialisation, catalogue: Catalogue) -> None:
        self._kept = kept
        self._stored = catalogue
        self.catalogue = with_equality(catalogue)

    def answer(self, question: Question, *, raw: bool = False) -> Result:
        """The answers to a question; `raw`: about representatives."""
        found = ask_representatives(
            self._kept, question.columns, question.body, raw=raw
        )
        if raw:
            return Result(found.rows, question.columns)
        return Result(
            found.rows,
            question.columns,
            self._kept.representatives,
            names=found.names,
        )

    def facts(self, known: Predicate, sort: Sort) -> Result:
        """The facts of a predicate."""
        if sort == "all":
            return self._everything(known)
        given = given_table(self._kept.engine, known.name, known.arity)
        if sort == "explicit":
            return Result(given, known.columns, predicate=known.name)
        everything = self._everything(known).to_terms()
        rows = split(everything, given, sort)
        return Result(rows, known.columns, predicate=known.name)

    def _everything(self, known: Predicate) -> Result:
        names = tuple(Variable(f"x{at}") for at in range(known.arity))
        return self.answer(self._question(known, names)).facts_of(
            known.name, known.columns
        )

    def _question(
        self, known: Predicate, arguments: tuple[Variable | Term, ...]
    ) -> Question:
        atom = Atom(known.name, arguments)
        return question_of((atom,), text=known.name, catalogue=self.catalogue)

    def count(self, known: Predicate) -> int:
        """How many facts a predicate has."""
        if known.name in {SAME_AS, TRIPLE}:
            return len(self._everything(known))
        kept = self._kept
        return kept.engine.expanded_count(known.name, kept.representatives)

    def contains(self, known: Predicate, row: pa.Table) -> bool:
        """Whether a fact holds."""
        (values,) = rows_in(term_table(row), 1)
        return self._holds(known, values)

    def _holds(self, known: Predicate, row: Sequence[Constant]) -> bool:
        question = self._question(known, tuple(map(Term, row)))
        return len(self.answer(question, raw=True)) > 0

    def counters(self, known: Predicate) -> Result:
        """Not kept."""
        del known
        raise NoCountersError(
            "no counters are kept where equality is rewritten",
            help='use `equality="axioms"`, or `equality="off"`',
        )

    def representatives(self) -> pa.Table:
        """The constants that are equal to others, each with what stands for it."""
        return self._kept.representatives.cliques()

    def explain(self, asked: Asked) -> Explanation:
        """Why a fact holds, from facts as they were given."""
        if asked.derivations:
            raise NoExplanationError(
                "derivations are not listed where equality is rewritten",
                help='leave `derivations` out, or use `equality="axioms"`',
            )
        known = self.catalogue.require(asked.fact.relation)
        if not self._holds(known, asked.fact.row):
            return Explanation(asked.fact, holds=False, prefixes=asked.prefixes)
        return explain_rewritten(
            self._kept,
            asked.fact,
            own=asked.own,
            prefixes=asked.prefixes,
            limit=asked.limit,
        )

    def sizes(self) -> dict[str, dict[str, int]]:
        """The sizes of predicates, in terms of representatives."""
        return _stored_sizes(self._kept, self._stored)


def reader_of(
    kept: Materialisation | EqualityMaterialisation,
    catalogue: Catalogue,
    *,
    counters: bool,
) -> Reader:
    """The reader of what is kept."""
    if isinstance(kept, Materialisation):
        return PlainReader(kept, catalogue, counters=counters)
    return RewrittenReader(kept, catalogue)


def _stored_sizes(
    kept: Materialisation | EqualityMaterialisation, catalogue: Catalogue
) -> dict[str, dict[str, int]]:
    statistics = kept.engine.statistics()
    nothing = {"facts": 0, "given": 0}
    return {each.name: dict(statistics.get(each.name, nothing)) for each in catalogue}
