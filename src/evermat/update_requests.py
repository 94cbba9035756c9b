"""From what a user asks for to what is done: rows as tables, rules as normal rules.

Everything that can be wrong with a request is found here, before anything changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from evermat.catalogue import ArityClashError
from evermat.columns import rows_without_columns, table_of_rows, term_table
from evermat.errors import EvermatError, Label
from evermat.io import read_table, rows_from
from evermat.lang.checks import require_valid
from evermat.lang.syntax import Declaration, Program, Term
from evermat.rule_inputs import read_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evermat.catalogue import Catalogue
    from evermat.lang.syntax import Atom, Rule
    from evermat.rule_inputs import RuleInput


class FactError(EvermatError, ValueError):
    """A fact with an argument that is not a constant."""

    code: ClassVar[str] = "EM252"


@dataclass(slots=True)
class Request:
    """What a user asks for.

    Attributes:
        insert, delete: for each predicate, pieces of data in any form.
        add_rules, remove_rules: rules in any form; facts among them are explicit
            facts to insert or to delete.
    """

    insert: dict[str, list[object]] = field(default_factory=dict)
    delete: dict[str, list[object]] = field(default_factory=dict)
    add_rules: list[RuleInput] = field(default_factory=list)
    remove_rules: list[RuleInput] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request in the form in which it is carried out.

    Attributes:
        catalogue: the predicates that are known afterwards.
        prefixes: the prefixes that are known afterwards.
    """

    insert: Mapping[str, pa.Table]
    delete: Mapping[str, pa.Table]
    add_rules: tuple[Rule, ...]
    remove_rules: tuple[Rule, ...]
    catalogue: Catalogue
    prefixes: Mapping[str, str]


def check_request(
    request: Request, *, catalogue: Catalogue, prefixes: Mapping[str, str]
) -> CheckedRequest:
    """Read and check everything a request holds.

    Raises:
        EvermatError: whatever is wrong with it; nothing has changed then.
    """
    coming = read_rules(request.add_rules, prefixes=prefixes)
    going = read_rules(request.remove_rules, prefixes=prefixes)
    coming_rules, coming_facts = _split(coming.program)
    going_rules, going_facts = _split(going.program)
    delete = _merged(request.delete, going.tables)
    for name in delete:
        catalogue.require(name)
    for fact in going_facts:
        known = catalogue.require(fact.predicate, span=fact.span)
        catalogue.check(known.name, fact.arity, span=fact.span)
    _check_rules(coming.program, coming_rules, catalogue)
    later = catalogue.extended(_mentioned(coming.program, coming_rules))
    for fact in coming_facts:
        later.check(fact.predicate, fact.arity, span=fact.span)
    later = later.extended((each.predicate, each.arity, ()) for each in coming_facts)
    insert = _tables(_merged(request.insert, coming.tables), coming_facts, later)
    later = later.extended(
        (name, each.num_columns, ()) for name, each in insert.items()
    )
    return CheckedRequest(
        insert=insert,
        delete=_tables(delete, going_facts, later),
        add_rules=coming_rules,
        remove_rules=going_rules,
        catalogue=later,
        prefixes=dict(prefixes) | dict(coming.program.prefixes),
    )


def _merged(
    data: Mapping[str, list[object]], tables: Mapping[str, list[pa.Table]]
) -> dict[str, list[object]]:
    return {
        name: [*data.get(name, ()), *tables.get(name, ())]
        for name in {**data, **tables}
    }


def _split(program: Program) -> tuple[tuple[Rule, ...], list[Atom]]:
    """Rules that derive, and facts, those written as rules without a body included."""
    rules = tuple(rule for rule in program.rules if rule.body)
    heads = (head for rule in program.rules if not rule.body for head in rule.heads)
    return rules, [*program.facts, *heads]


def _check_rules(
    program: Program, rules: tuple[Rule, ...], catalogue: Catalogue
) -> None:
    """Check new rules on their own and against the predicates that are known."""
    if not rules and not program.facts and not program.declarations:
        return
    mentioned = {atom.predicate for rule in rules for atom in _rule_atoms(rule)}
    declared = {each.predicate for each in program.declarations}
    known = tuple(
        Declaration(name, arity)
        for name in sorted(mentioned - declared)
        if (arity := catalogue.arity(name)) is not None
    )
    require_valid(
        Program(
            rules=program.rules,
            facts=program.facts,
            declarations=program.declarations + known,
        )
    )


def _mentioned(
    program: Program, rules: tuple[Rule, ...]
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    for each in program.declarations:
        yield each.predicate, each.arity, each.column_names
    for rule in rules:
        for atom in _rule_atoms(rule):
            yield atom.predicate, atom.arity, ()


def _rule_atoms(rule: Rule) -> Iterator[Atom]:
    yield from rule.heads
    yield from rule.positive_atoms()
    yield from rule.negated_atoms()


def _tables(
    data: Mapping[str, list[object]], facts: Iterable[Atom], catalogue: Catalogue
) -> dict[str, pa.Table]:
    """One table for each predicate that has rows."""
    pieces: dict[str, list[pa.Table]] = {}
    for name, parts in data.items():
        for part in parts:
            table = _read(part, name, catalogue)
            catalogue.check(name, table.num_columns)
            pieces.setdefault(name, []).append(table)
    for name, rows in _fact_rows(facts).items():
        table = table_of_rows(rows, len(rows[0]))
        pieces.setdefault(name, []).append(table)
    return {name: together(name, tables) for name, tables in pieces.items()}


def _read(part: object, name: str, catalogue: Catalogue) -> pa.Table:
    if isinstance(part, Path):
        return read_table(part)
    if isinstance(part, pa.Table):
        return part
    # An empty list has no width of its own.
    return rows_from(part, arity=catalogue.arity(name), name=name)


def _fact_rows(facts: Iterable[Atom]) -> dict[str, list[tuple[object, ...]]]:
    rows: dict[str, list[tuple[object, ...]]] = {}
    for fact in facts:
        row = tuple(_constant(fact, argument) for argument in fact.arguments)
        rows.setdefault(fact.predicate, []).append(row)
    return rows


def _constant(fact: Atom, argument: object) -> object:
    if isinstance(argument, Term):
        return argument.constant
    span = getattr(argument, "span", None) or fact.span
    raise FactError(
        f"a fact of `{fact.predicate}` has an argument that is not a constant",
        labels=() if span is None else (Label(span),),
        law="a fact has constants only",
        help="give the variable a value in a rule's body, or write a constant",
    )


def together(name: str, tables: list[pa.Table]) -> pa.Table:
    """The rows of several tables as one."""
    first, *rest = tables
    for other in rest:
        _same_width(name, first, other)
    if not rest:
        return first
    if not first.num_columns:
        return rows_without_columns(sum(table.num_rows for table in tables))
    if any(not other.schema.equals(first.schema) for other in rest):
        names = first.column_names
        tables = [term_table(table.rename_columns(names)) for table in tables]
    return pa.concat_tables(tables)


def _same_width(name: str, first: pa.Table, other: pa.Table) -> None:
    if first.num_columns != other.num_columns:
        raise ArityClashError(name, known=first.num_columns, found=other.num_columns)
