"""Requests, read and checked: rows become tables, and rules are validated.

All errors that a request contains by itself are found here, before anything changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.kb.inputs import fact_tables, read_rules
from evermat.lang.catalogue import ColumnNames
from evermat.lang.checks import require_valid
from evermat.lang.syntax import (
    Atom,
    Declaration,
    Program,
    is_contradiction,
)
from evermat.rdf import read_dataset, read_rdf
from evermat.rdf.objects import both, is_rdf_object, read_object
from evermat.runtime import collection_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from evermat.algebra.engine import StagedRows
    from evermat.kb.inputs import RuleInput, Stage
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import Rule


class RequestError(EvermatError, TypeError):
    """A call with invalid arguments."""

    code: ClassVar[str] = "EM557"


@dataclass(slots=True)
class Request:
    """The changes that a user requests.

    Attributes:
        insert, delete: for each predicate, pieces of data in any form.
        add_rules, remove_rules: rules in any form; facts among them are explicit
            facts to insert or to delete.
        replace: like `insert`, for predicates whose other explicit facts are deleted.
    """

    insert: dict[str, list[object]] = field(default_factory=dict)
    replace: dict[str, list[object]] = field(default_factory=dict)
    delete: dict[str, list[object]] = field(default_factory=dict)
    add_rules: list[RuleInput] = field(default_factory=list)
    remove_rules: list[RuleInput] = field(default_factory=list)


def by_predicate(data: object) -> dict[str, list[object]]:
    """Normalise the data of a call to the form that requests use."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise RequestError(
            f"data is to be given by predicate, not as `{type(data).__name__}`",
            help='write {"edge": rows}',
        )
    return {name: [rows] for name, rows in data.items()}


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request in its normalised form.

    Attributes:
        catalogue: the predicates after the request.
        prefixes: the prefixes after the request.
    """

    insert: Mapping[str, pa.Table | StagedRows]
    delete: Mapping[str, pa.Table | StagedRows]
    add_rules: tuple[Rule, ...]
    remove_rules: tuple[Rule, ...]
    catalogue: Catalogue
    prefixes: Mapping[str, str]
    replace: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Side:
    """The additions of a request, or its removals.

    Attributes:
        atoms: the first atom of each predicate with each number of arguments.
    """

    program: Program
    rules: tuple[Rule, ...]
    facts: tuple[Atom, ...]
    atoms: tuple[Atom, ...]
    data: dict[str, list[object]]


def check_request(
    request: Request,
    *,
    catalogue: Catalogue,
    prefixes: Mapping[str, str],
    stage: Stage | None = None,
    rules: Callable[[], Iterable[Rule]] = tuple,
) -> CheckedRequest:
    """Read and check all parts of a request.

    Args:
        request: the request.
        catalogue: the predicates before it.
        prefixes: the prefixes before it.
        stage: stages frames, if the engine can.
        rules: returns the rules before it.

    Raises:
        EvermatError: the request is not valid; nothing has changed then.
    """
    if not request.add_rules and not request.remove_rules:
        return _checked(request, catalogue, prefixes, stage, rules)
    with collection_paused():
        return _checked(request, catalogue, prefixes, stage, rules)


def _checked(
    request: Request,
    catalogue: Catalogue,
    prefixes: Mapping[str, str],
    stage: Stage | None,
    rules: Callable[[], Iterable[Rule]],
) -> CheckedRequest:
    together = request.insert
    if request.replace:
        together = _with_replacements(request, catalogue)
    additions = _side(together, request.add_rules, prefixes)
    removals = _side(request.delete, request.remove_rules, prefixes)
    for name in {*additions.data, *(atom.predicate for atom in additions.atoms)}:
        if not is_contradiction(name):
            catalogue.check_name(name)
    for name in removals.data:
        catalogue.require(name)
    for fact in removals.facts:
        catalogue.require(fact.predicate, span=fact.span)
    for side in (additions, removals):
        for atom in side.atoms:
            catalogue.check(atom.predicate, atom.arity, span=atom.span)
    _require_valid(additions, catalogue)
    later = catalogue.extended(_mentioned(additions))
    names = ColumnNames(catalogue.column_names, lambda: (*rules(), *additions.rules))
    insert = fact_tables(additions.data, additions.facts, later, stage, names)
    later = later.extended(
        Declaration(name, table.num_columns)
        for name, table in insert.items()
        if name not in later  # the others are checked already
    )
    return CheckedRequest(
        insert=insert,
        delete=fact_tables(removals.data, removals.facts, later, stage, names),
        add_rules=additions.rules,
        remove_rules=removals.rules,
        catalogue=later.with_column_names(names.first),
        prefixes={**prefixes, **dict(additions.program.prefixes)},
        replace=frozenset(request.replace),
    )


def _with_replacements(
    request: Request, catalogue: Catalogue
) -> dict[str, list[object]]:
    """Combine data to insert with data that replaces all facts of a predicate."""
    for name in request.replace:
        if name in request.insert or name in request.delete:
            raise RequestError(
                f"`{name}` is to be replaced, and changed in another way as well",
                reason="a replacement says all that is explicit afterwards",
                help="put all rows into the replacement, or make two updates",
            )
        if _is_empty(request.replace[name]):
            catalogue.require(name)
    return {**request.insert, **request.replace}


def _is_empty(parts: list[object]) -> bool:
    """Return whether data is an empty list, which does not declare a predicate."""
    return all(isinstance(part, list | tuple) and not part for part in parts)


def _side(
    data: dict[str, list[object]],
    rules: list[RuleInput],
    prefixes: Mapping[str, str],
) -> _Side:
    if not rules:
        return _Side(_NO_RULES, (), (), (), data)
    read = read_rules(rules, prefixes=prefixes)
    program = read.program
    # A rule without a body is a fact, whatever its syntax.
    bodiless = [rule for rule in program.rules if not rule.body]
    facts = (*program.facts, *(head for rule in bodiless for head in rule.heads))
    together = {name: list(parts) for name, parts in data.items()}
    for name, tables in read.tables.items():
        together.setdefault(name, []).extend(tables)
    first: dict[tuple[str, int], Atom] = {}
    for atom in _atoms(program):
        first.setdefault((atom.predicate, len(atom.arguments)), atom)
    return _Side(
        program=program,
        rules=tuple(rule for rule in program.rules if rule.body),
        facts=facts,
        atoms=tuple(first.values()),
        data=together,
    )


_NO_RULES = Program()


def _atoms(program: Program) -> Iterator[Atom]:
    yield from program.facts
    for rule in program.rules:
        yield from rule.atoms()


def _require_valid(side: _Side, catalogue: Catalogue) -> None:
    """Check new rules and facts against the known predicates."""
    program = side.program
    if not program.rules and not program.facts and not program.declarations:
        return
    declared = {each.predicate for each in program.declarations}
    mentioned = {atom.predicate for atom in side.atoms} - declared
    known = tuple(
        Declaration(each.name, each.arity, each.types)
        for name in sorted(mentioned)
        if (each := catalogue.get(name)) is not None
    )
    require_valid(replace(program, declarations=program.declarations + known))


def _mentioned(side: _Side) -> Iterator[Declaration]:
    yield from side.program.declarations
    for atom in side.atoms:
        if not is_contradiction(atom.predicate):
            yield Declaration(atom.predicate, atom.arity, span=atom.span)


# ------------------------------------------------------------------------------- RDF


def listed_rdf(given: object) -> list[object]:
    """Return the graphs and paths of an argument for RDF, of which it may be one."""
    if given is None:
        return []
    if isinstance(given, str | Path) or is_rdf_object(given):
        return [given]
    if not isinstance(given, Iterable):
        raise RequestError(
            f"RDF is given as paths or graphs, not as `{type(given).__name__}`"
        )
    return list(given)


def rdf_tables(
    given: object, base: str | None, *, named_graphs: bool
) -> tuple[pa.Table, pa.Table | None]:
    """Read triples, and those of named graphs if these are to be distinguished."""
    if is_rdf_object(given):
        found = read_object(given)
        return found if named_graphs else (both(found), None)
    if not isinstance(given, str | Path):
        raise RequestError(
            f"RDF is given as paths or graphs, not as `{type(given).__name__}`"
        )
    if named_graphs:
        return read_dataset(given, base=base)
    return read_rdf(given, base=base), None
