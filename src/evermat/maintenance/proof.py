"""Proofs: derivations of a fact from explicit facts, step by step.

The *height* of an explicit fact is 0. A rule instance derives its head at a height one
above that of its highest premise, and the height of any other fact is the least at
which an instance derives it. So premises are always lower than the facts they prove,
and no fact is ever used to prove itself.

Each fact has one *canonical* step: of the instances that derive it at its height, the
first by the order of the rules, then by the values of the variables, in the order of
their occurrence in the rule. Heights and steps depend only on the explicit facts and
the rules. So a proof is the same on every engine, with modules and without them, and
after an update it is the same as if everything had been loaded at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING

from evermat.algebra.compile import variables_of
from evermat.columns import constants, table_of_rows
from evermat.lang.syntax import Term
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra import Engine, SettledFacts
    from evermat.lang.syntax import Atom, Rule


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact, whether it holds or not."""

    relation: str
    row: tuple[Constant, ...]


@dataclass(frozen=True, eq=False)
class Instance:
    """A normal rule with values for its variables.

    Attributes:
        values: in the order of `variables_of`.
    """

    rule: Rule
    values: tuple[Constant, ...]

    @cached_property
    def binding(self) -> dict[str, Constant]:
        """The values by the names of variables."""
        return dict(zip(variables_of(self.rule), self.values, strict=True))

    @cached_property
    def premises(self) -> tuple[Fact, ...]:
        """The facts of the body, in order, each once."""
        facts = (self._fact(atom) for atom in self.rule.positive_atoms())
        return tuple(dict.fromkeys(facts))

    def _fact(self, atom: Atom) -> Fact:
        row = (
            argument.constant
            if isinstance(argument, Term)
            else self.binding[argument.name]  # type: ignore[union-attr]
            for argument in atom.arguments
        )
        return Fact(atom.predicate, tuple(row))


@dataclass(frozen=True, slots=True)
class Result:
    """The derivation of an aggregate's value.

    Attributes:
        rule: the aggregate rule.
        size: the number of members of the group.
        members: some of them, or the one that has the value.
    """

    rule: Rule
    size: int
    members: tuple[Fact, ...]


@dataclass(frozen=True, eq=False)
class Proof:
    """The proof of a fact.

    Attributes:
        fact: the fact.
        steps: for all facts of the proof, the instance that derives it; None for
            explicit facts.
        heights: the heights of all facts of the proof.
        results: the derivations of results of aggregates, which have no step.
    """

    fact: Fact
    steps: Mapping[Fact, Instance | None]
    heights: Mapping[Fact, int]
    results: Mapping[Fact, Result] = field(default_factory=dict)


def constant_order(constant: Constant) -> tuple[int, Decimal, str]:
    """Return the sort key of a constant: kind, value of integers, text of others."""
    # Not `int`, which refuses long integers.
    number = Decimal(constant.text if constant.kind is Kind.INTEGER else 0)
    return constant.kind, number, constant.text


class Exchange:
    """Converts facts between Python and an engine; inside of a transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def settled(self, facts: Iterable[Fact]) -> SettledFacts:
        """Return facts as a set of the engine."""
        rows: dict[str, list[tuple[Constant, ...]]] = {}
        for fact in facts:
            rows.setdefault(fact.relation, []).append(fact.row)
        engine = self._engine
        sets = [
            engine.intern(relation, table_of_rows(some, len(some[0])))
            for relation, some in rows.items()
        ]
        if len(sets) == 1:
            return sets[0]
        return engine.settle(reduce(or_, sets, engine.no_facts()))

    def listed(self, facts: SettledFacts) -> set[Fact]:
        """Return the facts of a set."""
        if facts.is_empty():
            return set()
        snapshot = self._engine.snapshot(facts)
        return {
            Fact(relation, row)
            for relation, size in snapshot.relations().items()
            for row in rows_in(snapshot.read(relation), size)
        }


def rows_in(table: pa.Table, size: int) -> Iterable[tuple[Constant, ...]]:
    """Return the rows of a table of terms."""
    if not table.num_columns:
        return [()] * size
    return zip(*map(constants, table.columns), strict=True)
