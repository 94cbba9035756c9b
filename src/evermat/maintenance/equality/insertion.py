"""Insertion with equality: the r-materialisation goes on.

Source: [motik2015rewriting], the algorithm behind the r-materialisation, in batches.

A round takes the facts that the last one derived. If there are equalities among them,
the constants are merged first: facts and rules that mention a constant which has lost
its status are rewritten, and only what is new after that is worked on. Otherwise rules
are applied to the new facts, as in any seminaïve evaluation.

An instance over representatives that was not there before has a body fact that is new,
or belongs to a rule that changed: so merging loses nothing, and no rule is applied
again to facts that stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Region
from evermat.algebra.abilities import UnequalValuesError
from evermat.algebra.compile import derive
from evermat.lang.equality import SAME
from evermat.maintenance.equality.contradictions import explained
from evermat.maintenance.equality.state import LOST

if TYPE_CHECKING:
    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.abilities import EqualityEngine, Representatives
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Run
    from evermat.maintenance.equality.rules import EqualityProgram, NormalRules
    from evermat.maintenance.equality.state import GivenFacts
    from evermat.values import Kind

EQUALITIES = Region(frozenset({SAME}))


class LargerComponent(Exception):  # noqa: N818  a signal between our own parts
    """Equality turned out to depend on more rules than an update began with."""

    def __init__(self, component: frozenset[Rule]) -> None:
        super().__init__()
        self.component = component


@dataclass(eq=False)
class Setting:
    """What both phases of an update share.

    Attributes:
        program: the rules of the program before and after, together.
        component: those that equality depends on.
        values: the kinds of constants that are never equal.
        given: the facts that are given.
        tracing: whether a contradiction is to be explained; it takes copies of cliques.
    """

    engine: EqualityEngine
    run: Run
    program: EqualityProgram
    component: frozenset[Rule]
    values: frozenset[Kind]
    given: GivenFacts
    tracing: bool = False

    def rules(self, representatives: Representatives) -> NormalRules:
        """The rules under representatives."""
        values = self.program.values(representatives)
        if values:
            needed = self.program.behind(values)
            if not needed <= self.component:
                raise LargerComponent(needed | self.component)
        return self.program.under(values, self.component)


class Insertion:
    """Adds facts and all that follows in the component of equality.

    Attributes:
        chosen: the rules that are applied.
        representatives: π, changed as constants are merged.
        pending: facts that are to be added when constants have been merged.
    """

    def __init__(
        self, setting: Setting, rules: frozenset[Rule], representatives: Representatives
    ) -> None:
        self.setting = setting
        self.chosen = rules
        self.representatives = representatives
        self.pending = setting.engine.no_facts()
        self.rules = setting.rules(representatives).proving(rules)

    @property
    def facts(self) -> Facts:
        """The facts so far."""
        return self.setting.run.updated

    def apply(self, rules: frozenset[Rule]) -> SettledFacts:
        """All that some rules derive."""
        chosen = self.setting.rules(self.representatives).proving(rules)
        return derive(
            self.setting.engine, chosen.full, positive=self.facts, negative=self.facts
        )

    def insert(self, candidates: SettledFacts) -> None:
        """Add facts, which need not be normal, and what follows from them."""
        engine, run = self.setting.engine, self.setting.run
        while True:
            candidates = engine.rewrite(candidates, self.representatives)
            delta = engine.settle(candidates - self.facts)
            if delta.is_empty():
                return
            equalities = engine.settle(delta.within(EQUALITIES))
            if not equalities.is_empty():
                self.pending = engine.settle(delta - equalities)
                candidates = engine.settle(self.pending | self._merge(equalities))
                continue
            self.pending = engine.no_facts()
            run.add(delta)
            run.round(delta)
            candidates = derive(
                engine,
                self.rules.delta,
                positive=self.facts,
                negative=self.facts,
                delta_positive=delta,
            )

    def merge(self, equalities: SettledFacts) -> SettledFacts:
        """Merge constants, and nothing else; returns those that lost their status.

        Raises:
            UnequalValuesError: two values would be equal, and why if it is traced.
        """
        setting, engine = self.setting, self.setting.engine
        before = self.representatives.copy() if setting.tracing else None
        try:
            return engine.merge(self.representatives, equalities, LOST, setting.values)
        except UnequalValuesError as error:
            if before is None:
                raise
            raise explained(error, self, before, equalities) from None

    def _merge(self, equalities: SettledFacts) -> SettledFacts:
        """Merge constants; returns facts that take the place of others, and new ones.

        Afterwards no fact mentions a constant that does not stand for itself.
        """
        setting, engine = self.setting, self.setting.engine
        before = setting.rules(self.representatives)
        lost = self.merge(equalities)
        if lost.is_empty():
            return engine.no_facts()
        after = setting.rules(self.representatives)
        outdated = engine.mentioning(lost, self.facts)
        setting.run.take_back(engine.settle(outdated.within(before.region)))
        # A given fact may come to matter to equality only now, because its predicate
        # turned out to be the same as that of a rule.
        images = engine.rewrite(outdated, self.representatives)
        news = images.within(after.region)
        if after is not before:
            self.rules = after.proving(self.chosen)
            changed = after.changed_since(before) & self.chosen
            if changed:
                again = after.proving(changed).full
                news |= derive(engine, again, positive=self.facts, negative=self.facts)
        # The nodes of cliques are facts that rules derive nothing from.
        nodes = engine.rewrite(equalities, self.representatives)
        setting.run.add(engine.settle(nodes - self.facts))
        return engine.settle(news - nodes)
