"""The dependency graph of predicates, for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.explain.explanation import rule_place
from evermat.lang.printer import Printer
from evermat.lang.strata import strong_components

if TYPE_CHECKING:
    from evermat.api import KnowledgeBase
    from evermat.lang.syntax import Rule


@dataclass(frozen=True, slots=True)
class Graph:
    """The rules of a knowledge base as a graph of predicates.

    Attributes:
        nodes: predicates with their level: 0 without rules, and otherwise above
            everything they depend on that does not depend on them.
        edges: from a predicate in a body to that of the head.
        rules: the rules, with the level of their head.
    """

    nodes: list[dict[str, object]]
    edges: list[dict[str, object]]
    rules: list[dict[str, object]]


def graph_of(kb: KnowledgeBase) -> Graph:
    """Return the graph of a knowledge base."""
    names = list(kb.predicates)
    number = {name: at for at, name in enumerate(names)}
    pairs = {
        (atom.predicate, rule.head.predicate): is_negated
        for is_negated in (False, True)
        for rule in kb.rules
        for atom in (rule.negated_atoms() if is_negated else rule.positive_atoms())
    }
    needs: list[list[int]] = [[] for _ in names]
    for body, head in pairs:
        needs[number[head]].append(number[body])
    component = strong_components(needs)
    level = _levels(needs, component, {rule.head.predicate for rule in kb.rules}, names)
    recursive = {
        name
        for name in names
        if component.count(component[number[name]]) > 1 or (name, name) in pairs
    }
    printer = Printer(dict(kb.prefixes))
    return Graph(
        nodes=[
            {"name": name, "level": level[at], "is_recursive": name in recursive}
            for at, name in enumerate(names)
        ],
        edges=[
            {"from": body, "to": head, "is_negated": is_negated}
            for (body, head), is_negated in pairs.items()
        ],
        rules=[
            _rule(rule, printer, level[number[rule.head.predicate]])
            for rule in kb.rules
        ],
    )


def _rule(rule: Rule, printer: Printer, level: int) -> dict[str, object]:
    return {
        "text": printer.rule(rule),
        "head": rule.head.predicate,
        "place": (rule_place(rule) or "").replace("\\", "/").rpartition("/")[2],
        "level": level,
    }


def _levels(
    needs: list[list[int]], component: list[int], derived: set[str], names: list[str]
) -> list[int]:
    """Return the level of each predicate; components precede those that need them."""
    levels: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for at, its in enumerate(component):
        members.setdefault(its, []).append(at)
    for its in sorted(members):  # those that others need have lower numbers
        below = [
            levels[component[other]] + 1
            for at in members[its]
            for other in needs[at]
            if component[other] != its
        ]
        is_derived = any(names[at] in derived for at in members[its])
        levels[its] = max([*below, int(is_derived)])
    return [levels[its] for its in component]
