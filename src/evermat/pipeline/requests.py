"""What a run asks of the knowledge base: facts and rules that come and go.

A source that is read as a whole takes the place of the facts that are given now.
Sources with `update` say themselves what came and what left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evermat.lang.normalise import normal_rules

if TYPE_CHECKING:
    from collections.abc import (
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    import pyarrow as pa

    from evermat.api import KnowledgeBase
    from evermat.lang.syntax import Program, Rule
    from evermat.pipeline.intake import Taken
    from evermat.pipeline.program import PipelineProgram
    from evermat.results.change import Change


@dataclass(slots=True)
class Request:
    """What a transaction is to hold; facts in parts, by predicate."""

    insert: dict[str, list[object]] = field(default_factory=dict)
    delete: dict[str, list[object]] = field(default_factory=dict)
    add_rules: Program | None = None
    remove_rules: list[Rule] = field(default_factory=list)

    def carried_out(self, kb: KnowledgeBase) -> Change:
        """Have a knowledge base do it, in one step."""
        with kb.transaction() as transaction:
            for name, parts in self.insert.items():
                for part in parts:
                    transaction.insert(name, part)
            for name, parts in self.delete.items():
                for part in parts:
                    transaction.delete(name, part)
            if self.add_rules is not None:
                transaction.add_rules(self.add_rules)
            transaction.remove_rules(self.remove_rules)
        return transaction.change


def first_request(program: PipelineProgram, taken: Iterable[Taken]) -> Request:
    """Everything, for a knowledge base that is empty."""
    pieces = _pieces([*taken], program.facts)
    return Request(insert=pieces, add_rules=program.program)


def next_request(
    kb: KnowledgeBase,
    program: PipelineProgram,
    whole: Sequence[Taken],
    *,
    insert: Sequence[Taken] = (),
    delete: Sequence[Taken] = (),
    told: Collection[str] | None = None,
) -> Request:
    """What makes the knowledge base hold what there should be.

    A source that was read as a whole takes the place of what is given: all that is
    given is deleted, and all that was read is inserted. An update deletes first, and
    works out by itself, where the facts are, which of them really come and go.

    Args:
        kb: what there is.
        program: the rules and facts there should be.
        whole: sources that were read as a whole.
        insert: rows that sources say came.
        delete: rows that sources say left.
        told: predicates of sources that say what came and left, even if nothing did;
            None if all sources are among `whole`, so that facts of other predicates
            have to go.
    """
    request = Request()
    request.add_rules, request.remove_rules = _rule_changes(kb, program.program)
    is_complete = told is None
    facts = {
        name: rows for name, rows in program.facts.items() if name not in (told or ())
    }
    request.insert = _pieces(whole, facts)
    for name, sizes in kb.stats()["predicates"].items():
        if sizes["given"] and (is_complete or name in request.insert):
            request.delete[name] = [kb.facts(name, "explicit")]
    known = kb.predicates
    for side, taken in ((request.insert, insert), (request.delete, delete)):
        for name, parts in _pieces(taken, {}).items():
            if side is request.insert or name in known:
                side[name] = parts
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
