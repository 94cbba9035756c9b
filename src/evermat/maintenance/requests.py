"""Requests for updates, as they come in, and what they really change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evermat.algebra import Views
from evermat.algebra.abilities import reads_many
from evermat.algebra.compile import compile_rules
from evermat.errors import EvermatError
from evermat.lang.syntax import Atom, Rule, Variable
from evermat.maintenance.updates import Ignored, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra import Engine, Facts, SettledFacts
    from evermat.maintenance.rule_book import RuleChange


class UnknownRelationError(EvermatError, LookupError):
    """Rows were to be deleted from a relation that nobody mentioned.

    Attributes:
        relation: its name.
    """

    code: ClassVar[str] = "EM514"

    def __init__(self, relation: str) -> None:
        self.relation = relation
        super().__init__(
            f"there is nothing to delete from: no fact or rule mentions `{relation}`",
            help="check the name",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One update as it was asked for.

    Attributes:
        delete, insert: rows by relation.
        remove_rules, add_rules: what changes in the program.
        replace: relations in which nothing is to be explicit but the inserted rows.
    """

    delete: Mapping[str, pa.Table]
    insert: Mapping[str, pa.Table]
    remove_rules: Iterable[Rule] = ()
    add_rules: Iterable[Rule] = ()
    replace: frozenset[str] = frozenset()


def declare(engine: Engine, request: Request, rules: Iterable[Rule]) -> None:
    """Make relations of rules and rows known, and refuse what does not fit.

    Raises:
        UnknownRelationError: rows to delete from a relation nobody mentioned.
        ArityMismatchError: rows or atoms with a wrong number of columns.
    """
    declare_rules(engine, rules)
    known = engine.relations()
    for relation in request.delete:
        if relation not in known and relation not in request.insert:
            raise UnknownRelationError(relation)
    for tables in (request.delete, request.insert):
        for relation, table in tables.items():
            if known.get(relation) != table.num_columns:
                engine.declare(relation, table.num_columns)


def declare_rules(engine: Engine, rules: Iterable[Rule]) -> None:
    """Make the relations of rules known."""
    for rule in rules:
        for atom in (rule.head, *rule.positive_atoms(), *rule.negated_atoms()):
            engine.declare(atom.predicate, atom.arity)


def read_request(
    engine: Engine,
    request: Request,
    change: RuleChange,
    given_among: Callable[[Facts], SettledFacts],
) -> Update:
    """What a request really changes: E⁻ := (E⁻ ∩ E) ∖ E⁺ and E⁺ := E⁺ ∖ E.

    Args:
        engine: knows the facts.
        request: rows to delete and to insert.
        change: what the request does to the rules.
        given_among: picks those of some facts that are given.
    """
    wanted = _read(engine, request.insert, known=False)
    unwanted = _read(engine, request.delete, known=True)
    deletions, insertions = unwanted, wanted
    if not unwanted.is_empty():
        deletions = engine.settle(given_among(unwanted) - wanted)
    replaced = engine.no_facts()
    if request.replace:
        there = _all_explicit(engine, request.replace)
        replaced = engine.settle(given_among(there) - wanted)
    if not wanted.is_empty():
        insertions = engine.settle(wanted - given_among(wanted))
    return Update(
        deletions=engine.settle(deletions | replaced) if request.replace else deletions,
        insertions=insertions,
        removed_rules=change.removed,
        added_rules=change.added,
        ignored=Ignored(
            deletions=rows_in(request.delete) - deletions.size(),
            insertions=wanted.size() - insertions.size(),
            rules=change.ignored,
        ),
    )


def _read(
    engine: Engine, tables: Mapping[str, pa.Table], *, known: bool
) -> SettledFacts:
    """The rows of tables as facts; only those that have been seen, if `known`."""
    filled = {name: table for name, table in tables.items() if table.num_rows}
    if reads_many(engine):
        return engine.find_all(filled) if known else engine.intern_all(filled)
    read = engine.find if known else engine.intern
    union: Facts = engine.no_facts()
    for name, table in filled.items():
        union |= read(name, table)
    return engine.settle(union)


def _all_explicit(engine: Engine, names: Iterable[str]) -> SettledFacts:
    """All explicit facts of relations, which a rule for each copies: `p(?x) :- p(?x)`.

    Views of stored sets are never settled as such, as the work would not follow the
    change. Here it may follow the facts: all of them were handed over anew.
    """
    known = engine.relations()
    rules = []
    for name in names:
        atom = Atom(name, tuple(Variable(f"x{at}") for at in range(known[name])))
        rules.append(Rule((atom,), (atom,)))
    copies = compile_rules(tuple(rules), lambda _rule, _atom: False).full
    return engine.derive(copies, Views(engine.explicit, engine.explicit))


def rows_in(tables: Mapping[str, pa.Table]) -> int:
    """The number of rows of some tables."""
    return sum(table.num_rows for table in tables.values())
