"""Facts that were told: no rule derives them, so they hold because they are given.

One fact of representatives stands for several given facts, under different names. When
one of them goes, there is no need to look for proofs: it is known what is still given.
This is the first step of a deletion, and often the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Role
from evermat.algebra.compile import derive

if TYPE_CHECKING:
    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.abilities import Representatives
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Run
    from evermat.maintenance.equality.insertion import Setting
    from evermat.maintenance.equality.state import GivenFacts


class ToldFacts:
    """Facts of the component of equality before an update, told ones above all.

    Attributes:
        chosen: the rules that stay.
        rules: their form for facts of representatives.
        region: the facts that matter to them.
        derivable: the facts that they derive.
    """

    def __init__(
        self,
        setting: Setting,
        chosen: frozenset[Rule],
        given: GivenFacts,
        representatives: Representatives,
    ) -> None:
        normal = setting.rules(representatives)
        self.engine = setting.engine
        self.run = setting.run
        self.given = given
        self.representatives = representatives
        self.chosen = chosen
        self.rules = normal.checking(chosen)
        self.region = normal.region
        self.derivable = normal.derivable
        self._lone_rules = normal.checking_alone(chosen)
        self._read_alone = normal.read_alone

    def among(self, facts: SettledFacts) -> SettledFacts:
        """Those of the facts that no rule derives."""
        return self.engine.settle(facts - facts.within(self.derivable))

    def withdraw(
        self, facts: SettledFacts, still: SettledFacts, alone: SettledFacts
    ) -> SettledFacts:
        """Deal with told facts behind which given ones go; returns facts to be checked.

        Those of which nothing is given any more do not hold. Those of which something
        is still given hold if their cliques do, so what is in doubt is what followed
        from them. If that may be more than these cliques, they are checked before.

        Args:
            facts: facts that may have lost a given one.
            still: facts behind which something is still given.
            alone: given facts that go and stand for themselves only.
        """
        engine = self.engine
        told, lone = self.among(facts), self.among(alone)
        held = engine.settle(told & still)
        safe = engine.settle(held - held.within(self._read_alone))
        found = following(self.run, self.rules, safe)
        lost = engine.settle((told - held) | lone)
        gone = engine.settle((self.given.deletions - alone).within(self.region))
        doubtful = (facts | alone) - safe - lost
        return engine.settle(doubtful | found | self.lose(lost, gone))

    def lose(self, facts: SettledFacts, given: SettledFacts) -> SettledFacts:
        """Delete told facts; returns what may depend on them.

        Args:
            facts: facts that do not hold, at least not for all names.
            given: all given facts that were behind those of them that stand for
                several, and maybe others.
        """
        engine, run = self.engine, self.run
        if facts.is_empty():
            return facts
        run.round(facts)
        crowded = engine.settle(facts & self._crowded(given))
        by_two = following(run, self.rules, crowded)
        by_one = following(run, self._lone_rules, facts - crowded)
        run.delete(facts)
        return engine.settle(by_two | by_one)

    def _crowded(self, given: SettledFacts) -> SettledFacts:
        """All facts behind which there are two given facts, and maybe more."""
        engine = self.engine
        others = engine.settle(given - engine.rewrite(given, self.representatives))
        if others.is_empty():
            return others
        images = engine.rewrite(others, self.representatives)
        if images.size() < others.size():
            return images
        return engine.settle(images & given)


def following(run: Run, rules: RuleSet, facts: Facts) -> SettledFacts:
    """What rules derive from some facts, and others that are not deleted."""
    read = rules.delta.changes.get(Role.CHANGED, frozenset())
    changed = run.engine.settle(facts)
    if read.isdisjoint(changed.relations()):
        return run.engine.no_facts()
    remaining = run.materialised - run.deleted
    with run.forwards("delete"):
        return derive(
            run.engine,
            rules.delta,
            positive=remaining,
            negative=remaining,
            delta_positive=changed,
        )
