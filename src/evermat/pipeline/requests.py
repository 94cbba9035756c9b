"""What a run asks of the knowledge base: facts and rules that come and go.

A source that is read as a whole is compared with the facts that are given now; what
is in one and not in the other is what changed. Sources with `update` say themselves
what came and what left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.change import row_keys
from evermat.columns import term_table
from evermat.fact_tables import together
from evermat.lang.normalise import normal_rules

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from evermat.api import KnowledgeBase
    from evermat.lang.syntax import Program, Rule
    from evermat.pipeline.intake import Taken
    from evermat.pipeline.program import PipelineProgram


@dataclass(slots=True)
class Request:
    """Arguments for `KnowledgeBase.update`."""

    insert: dict[str, object] = field(default_factory=dict)
    delete: dict[str, object] = field(default_factory=dict)
    add_rules: Program | None = None
    remove_rules: list[Rule] = field(default_factory=list)


def first_request(program: PipelineProgram, taken: Iterable[Taken]) -> Request:
    """Everything, for a knowledge base that is empty."""
    pieces = _pieces([*taken], program.facts)
    return Request(
        insert={name: _one(name, parts) for name, parts in pieces.items()},
        add_rules=program.program,
    )


def next_request(
    kb: KnowledgeBase,
    program: PipelineProgram,
    whole: Sequence[Taken],
    *,
    insert: Sequence[Taken] = (),
    delete: Sequence[Taken] = (),
    is_complete: bool,
) -> Request:
    """What is different from what the knowledge base holds.

    Args:
        kb: what there is.
        program: the rules and facts there should be.
        whole: sources that were read as a whole.
        insert: rows that sources say came.
        delete: rows that sources say left.
        is_complete: whether all sources are among `whole`, so that facts of other
            predicates have to go.
    """
    request = Request()
    request.add_rules, request.remove_rules = _rule_changes(kb, program.program)
    given = {name: size["given"] for name, size in kb.stats()["predicates"].items()}
    told = {name for each in (*insert, *delete) for name in each.facts}
    pieces = _pieces(whole, {n: t for n, t in program.facts.items() if n not in told})
    for name, parts in pieces.items():
        new = _table(name, parts)
        old = _given(kb, name) if given.get(name) else new.slice(0, 0)
        _put(request.insert, name, _without(new, old))
        _put(request.delete, name, _without(old, new))
    if is_complete:
        for name, number in given.items():
            if number and name not in pieces:
                request.delete[name] = _given(kb, name)
    for side, taken in ((request.insert, insert), (request.delete, delete)):
        for name, parts in _pieces(taken, {}).items():
            side[name] = _one(name, parts)
    # Deletions come first in an update, so that a row in both would stay.
    known = kb.predicates
    request.delete = {n: rows for n, rows in request.delete.items() if n in known}
    return request


def _pieces(
    taken: Sequence[Taken], facts: Mapping[str, pa.Table]
) -> dict[str, list[object]]:
    pieces: dict[str, list[object]] = {}
    for each in taken:
        for name, rows in each.facts.items():
            pieces.setdefault(name, []).append(rows)
    for name, table in facts.items():
        pieces.setdefault(name, []).append(table)
    return pieces


def _one(name: str, parts: Sequence[object]) -> object:
    """Parts of a predicate in one; frames stay frames where all are frames."""
    if all(hasattr(part, "unionAll") for part in parts):
        return reduce(lambda one, other: one.unionAll(other), parts)  # type: ignore[attr-defined]
    return parts[0] if len(parts) == 1 else _table(name, parts)


def _table(name: str, parts: Sequence[object]) -> pa.Table:
    return together(name, [term_table(_arrow(part)) for part in parts])


def _arrow(part: Any) -> pa.Table:  # noqa: ANN401  a table, or a frame of Spark
    return part if isinstance(part, pa.Table) else part.toArrow()


def _given(kb: KnowledgeBase, name: str) -> pa.Table:
    return kb.facts(name, "explicit").to_terms()


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows that are not among the others."""
    if not others.num_rows or not rows.num_rows:
        return rows
    found = pc.is_in(row_keys(rows), value_set=row_keys(others))
    return rows.filter(pc.invert(found))


def _put(side: dict[str, object], name: str, rows: pa.Table) -> None:
    if rows.num_rows:
        side[name] = rows


def _rule_changes(
    kb: KnowledgeBase, program: Program
) -> tuple[Program | None, list[Rule]]:
    """The rules that are new, and those that are no longer there."""
    old = {_meaning(rule): rule for rule in kb.rules}
    new = {_meaning(rule): rule for rule in _single_heads(program.rules)}
    added = tuple(rule for key, rule in new.items() if key not in old)
    removed = [rule for key, rule in old.items() if key not in new]
    return (replace(program, rules=added) if added else None), removed


def _meaning(rule: Rule) -> frozenset[Hashable]:
    """The same for rules that mean the same."""
    return frozenset(normal_rules([rule]))


def _single_heads(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules as `KnowledgeBase.rules` has them: one for each head."""
    for rule in rules:
        for head in rule.heads:
            yield replace(rule, heads=(head,))
