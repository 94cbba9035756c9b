"""A module of one's own: symmetric relations, without a recursive rule.

Rules such as `married(?y, ?x) :- married(?x, ?y)` are recursive, so that every update
has to reckon with derivations that go round in circles. A module knows better: turning
a fact around twice leads nowhere new, so that one step is all there ever is.

A module is found by a function, which is registered once; programs that are compiled
afterwards use it. What it must answer is described in `evermat.maintenance.modules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import evermat
from evermat.algebra import Region, Views
from evermat.algebra.compile import compile_rules
from evermat.lang.syntax import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.algebra import Facts, SettledFacts
    from evermat.lang.syntax import Atom, Rule
    from evermat.maintenance.modules import Stage


class SymmetricModule:
    """One rule that turns the facts of a relation around."""

    name = "symmetric relation"

    def __init__(self, rule: Rule) -> None:
        self.rules = (rule,)
        self.region = Region(frozenset({rule.head.predicate}))
        self._queries = compile_rules(self.rules, lambda _rule, _atom: True)

    def derive(self, stage: Stage) -> SettledFacts:
        """All facts, turned around."""
        views = Views(stage.positive, stage.negative)
        return stage.engine.derive(self._queries.full, views)

    def add(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """New facts, turned around."""
        views = Views(stage.positive, stage.negative, delta)
        return stage.engine.derive(self._queries.delta, views)

    def diff(
        self, stage: Stage, changed: SettledFacts, changed_absent: SettledFacts
    ) -> SettledFacts:
        """The rule reads nothing of lower strata."""
        del changed, changed_absent
        return stage.engine.no_facts()

    def delete(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """Deleted facts, turned around, unless they hold by themselves."""
        return stage.engine.nonrecursive_counts.zero(self.add(stage, delta))

    def rederive(self, stage: Stage, deleted: SettledFacts) -> SettledFacts:
        """Deleted facts whose other half is still there."""
        views = Views(stage.positive, stage.negative, deleted)
        return stage.engine.derive(self._queries.rederive, views)

    def prove(
        self, stage: Stage, facts: SettledFacts, proved: Facts | None
    ) -> SettledFacts:
        """Facts whose other half surely holds."""
        engine = stage.engine
        halves = self.bodies(stage, facts)
        sure: Facts = engine.nonrecursive_counts.positive(halves)
        if proved is not None:
            sure |= engine.settle(halves & proved)
        views = Views(sure, stage.negative, facts)
        return engine.derive(self._queries.rederive, views)

    def bodies(self, stage: Stage, facts: SettledFacts) -> SettledFacts:
        """The other halves."""
        views = Views(stage.positive, stage.negative, facts)
        return stage.engine.derive(self._queries.backward, views)


def find_symmetric(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> Iterator[SymmetricModule]:
    """Rules of the form `p(?y, ?x) :- p(?x, ?y) .` that no closure needs."""
    del is_local
    for rule in rules:
        alone = all(
            other is rule or other.head.predicate != rule.head.predicate
            for other in rules
        )
        if alone and _turns_around(rule):
            yield SymmetricModule(rule)


def _turns_around(rule: Rule) -> bool:
    if len(rule.body) != 1:
        return False
    bodies = list(rule.positive_atoms())
    return (
        len(bodies) == 1
        and bodies[0].predicate == rule.head.predicate
        and bodies[0].arguments == rule.head.arguments[::-1]
        and len(set(rule.head.arguments)) == len(rule.head.arguments) == 2  # noqa: PLR2004
        and all(isinstance(each, Variable) for each in rule.head.arguments)
    )


RULES = """
    married(?y, ?x) :- married(?x, ?y) .
    married(?x, ?y) :- wedding(?x, ?y, ?year) .
    in_law(?x, ?z) :- married(?x, ?y), sibling(?y, ?z) .
"""


def main() -> None:
    """Use the module, and see that nothing but the work is different."""
    evermat.register_module(find_symmetric)
    kb = evermat.KnowledgeBase(RULES)
    kb.load(
        {
            "wedding": [("ann", "bob", 1999), ("cem", "dee", 2005)],
            "married": [("bob", "ann")],
            "sibling": [("bob", "eve"), ("ann", "fay")],
        }
    )
    print("in-laws:", sorted(kb.facts("in_law")))
    change = kb.delete("wedding", [("ann", "bob", 1999)])
    print("the wedding is struck off, but they said so themselves:", change)
    change = kb.delete("married", [("bob", "ann")])
    print("now they are not married any more:", change)
    print("rule instances matched:", change.report.forward_instances)


if __name__ == "__main__":
    main()
