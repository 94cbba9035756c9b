"""B/F^≈: deletion when equal constants are replaced by representatives.

Base facts are those that no rule derives. One rewritten fact represents several
explicit facts, under different names. When one of them is deleted, no search for proofs
is necessary: it is known which ones are still explicit. This is the first step of a
deletion, and often the last one.

Source: [motik2015equality], Algorithms 1 to 7. They handle one fact at a time; here
each step works on a set of facts.

Notation (left: the paper; right: this file)

    π, I         `old`, `engine.materialised`    before the update
    π'            `new`                           equalities that are proved
    D; O         `doubtful`; `run.deleted`       the latter are those not all proved
    C; P ∖ P̂     `checked`; `proved`
    Y            `delayed`, `delayed_images`     proved, but not checked so far
    S            `run.deleted - images`          disproved: no preimage is proved
    F^π ∩ E      `engine.preimages`              looked up, never enumerated
    c ≈ c        `~same(c, c)`                   for cliques of at least two

Facts of I represent all facts that differ only in equal constants. A fact of I is
proved here if its cliques are proved *whole* and its one image under π' is; the paper
also considers it proved if each of its several images is. As a result, some facts are
checked once more, but products of cliques need not be enumerated.

Differences from B/F: everything is derived anew from the explicit facts, with constants
that are equal only if that is proved, too; lost facts may therefore split a clique, and
several facts replace the one that represented them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import (
    Apply,
    Column,
    Pattern,
    Query,
    QuerySet,
    Require,
    Role,
    Views,
)
from evermat.algebra.compile import derive
from evermat.lang.equality import SAME
from evermat.maintenance.equality.program import EQUALITIES, LOST

if TYPE_CHECKING:
    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.algebra.equality import Representatives
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Run
    from evermat.maintenance.equality.program import ExplicitFacts, Setting


class BaseFacts:
    """Facts of the component of equality before an update, base facts in particular.

    Attributes:
        chosen: the rules that are kept.
        rules: their rewritten form.
        region: the facts that they read.
        derivable: the facts that they derive.
    """

    def __init__(
        self,
        setting: Setting,
        chosen: frozenset[Rule],
        explicit: ExplicitFacts,
        representatives: Representatives,
    ) -> None:
        normal = setting.rules(representatives)
        self.engine = setting.engine
        self.run = setting.run
        self.explicit = explicit
        self.representatives = representatives
        self.chosen = chosen
        self.rules = normal.checking(chosen)
        self.region = normal.region
        self.derivable = normal.derivable
        self._lone_rules = normal.checking_alone(chosen)
        self._read_alone = normal.read_alone

    def among(self, facts: SettledFacts) -> SettledFacts:
        """Return those of the facts that no rule derives."""
        return self.engine.settle(facts - facts.within(self.derivable))

    def delete(
        self, facts: SettledFacts, still: SettledFacts, alone: SettledFacts
    ) -> SettledFacts:
        """Handle base facts that lose preimages; return facts to be checked.

        Those without a preimage no longer hold. Those with an explicit preimage left
        hold if their cliques do, so only the facts that followed from them are in
        doubt. If these may be more than the facts of the cliques, the cliques are
        checked before.

        Args:
            facts: facts that may have lost a preimage.
            still: facts that still have a preimage.
            alone: deleted explicit facts whose constants are equal to no others.
        """
        engine = self.engine
        base, lone = self.among(facts), self.among(alone)
        held = engine.settle(base & still)
        safe = engine.settle(held - held.within(self._read_alone))
        found = following(self.run, self.rules, safe)
        lost = engine.settle((base - held) | lone)
        gone = engine.settle((self.explicit.deletions - alone).within(self.region))
        doubtful = (facts | alone) - safe - lost
        return engine.settle(doubtful | found | self.lose(lost, gone))

    def lose(self, facts: SettledFacts, preimages: SettledFacts) -> SettledFacts:
        """Delete base facts; return the facts that may depend on them.

        Args:
            facts: facts that do not hold, at least not for all names.
            preimages: a superset of the preimages of those facts that represent
                several.
        """
        engine, run = self.engine, self.run
        if facts.is_empty():
            return facts
        run.round(facts)
        crowded = engine.settle(facts & self._crowded(preimages))
        by_two = following(run, self.rules, crowded)
        by_one = following(run, self._lone_rules, facts - crowded)
        run.delete(facts)
        return engine.settle(by_two | by_one)

    def _crowded(self, preimages: SettledFacts) -> SettledFacts:
        """Return a superset of the facts with at least two preimages."""
        engine = self.engine
        others = engine.settle(
            preimages - engine.rewrite(preimages, self.representatives)
        )
        if others.is_empty():
            return others
        images = engine.rewrite(others, self.representatives)
        if images.size() < others.size():
            return images
        return engine.settle(images & preimages)


def following(run: Run, rules: RuleSet, facts: Facts) -> SettledFacts:
    """Return the facts that rules derive from some facts, and remaining ones."""
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


# ----------------------------------------------------------------------------- deletion


_PAIR = (Column(0), Column(1))
_BROKEN = QuerySet(
    (
        Query(
            head=Pattern(SAME, _PAIR),
            positive=(Pattern(SAME, _PAIR, Role.CHANGED),),
            computations=(Require(Apply("!=", _PAIR)),),
            column_count=2,
            label="members that are not proved equal",
        ),
    )
)


_OTHER_NAMES = QuerySet(
    (
        Query(
            head=Pattern(LOST, (Column(1),)),
            positive=(Pattern(SAME, _PAIR, Role.CHANGED),),
            computations=(Require(Apply("!=", _PAIR)),),
            column_count=2,
            label="members that do not represent their clique",
        ),
    )
)


class Deletion:
    """Determines the facts that no longer hold, and the cliques that are split."""

    def __init__(self, setting: Setting, base: BaseFacts) -> None:
        self.setting = setting
        self.engine = setting.engine
        self.run = setting.run
        self.base = base
        self.explicit = base.explicit
        self.old = base.representatives
        self.chosen = base.chosen
        self.old_rules = base.rules
        self.region = base.region
        self.derivable = base.derivable
        self.new = self.engine.representatives()
        self.new_rules = setting.rules(self.new).proving(self.chosen)
        growing = self.engine.growing
        self.doubtful = growing()
        self.checked = growing()
        self.explored = growing()
        self.proved = growing()
        self.images = growing()
        self.whole = growing()
        self.delayed = growing()
        self.delayed_images = self.engine.no_facts()
        self.nodes = self.engine.no_facts()
        self.gains = 0
        """The number of times something was proved."""

    def delete(self, candidates: SettledFacts) -> Representatives:
        """Delete facts that no longer hold; return the representatives (Algorithm 1).

        Args:
            candidates: normal facts that lost a derivation or a preimage.
        """
        engine, run = self.engine, self.run
        while True:
            batch = engine.settle(candidates - self.doubtful - run.deleted)
            if batch.is_empty():
                break
            self.doubtful.add(batch)
            failed = self._check(batch)
            if failed.is_empty():
                break
            run.round(failed)
            derived = following(run, self.old_rules, failed)
            run.delete(failed)
            nodes = engine.settle(failed.within(EQUALITIES))
            candidates = engine.settle(derived | self._split(nodes))
        return self._propagate()

    def _split(self, nodes: SettledFacts) -> SettledFacts:
        """Split facts about cliques that fall apart; return facts to be checked.

        Base facts with a preimage continue to hold.
        """
        engine, run = self.engine, self.run
        if nodes.is_empty():
            return nodes
        remaining = run.materialised - run.deleted
        mentioned = engine.mentioning(nodes, remaining.within(self.region))
        base = self.base.among(mentioned)
        if base.is_empty():
            return mentioned
        self._prove(base)
        preimages = self.explicit.before(engine.preimages(base, self.old))
        return engine.settle((mentioned - base) | self.base.lose(base, preimages))

    def _propagate(self) -> Representatives:
        """Replace deleted facts by proved ones (Algorithm 2)."""
        engine, run = self.engine, self.run
        nodes = engine.settle(run.deleted.within(EQUALITIES))
        after = self.old
        if not nodes.is_empty():
            after = self.old.copy()
            members = engine.members(nodes, self.old)
            engine.restore(after, members, self.new)
            # A remaining part of a clique with at least two members has a node again.
            kept = engine.rewrite(self.nodes, self.new)
            kept = engine.rewritten_into(kept, self.old, nodes)
            run.add(engine.settle(kept - run.updated))
        proved = engine.rewrite(engine.settle(self.proved), after)
        run.add(engine.settle(proved - run.updated))
        return after

    # ------------------------------------------------------------ backward chaining

    def _check(self, batch: SettledFacts) -> SettledFacts:
        """Search for proofs of facts, one level of the search at a time (Algorithm 4).

        Afterwards every fact of the batch is proved, or explored: all facts from which
        it could be derived are explored or proved, too. Returns the facts without a
        proof.
        """
        engine, run = self.engine, self.run
        waiting = self._open(batch)
        todo = engine.settle(waiting - self.explored)
        while not todo.is_empty():
            waiting = self._ask(todo, waiting)
            if waiting.is_empty():
                break
            hints = self._hints(todo)
            if not hints.is_empty():
                waiting = self._ask(hints, waiting)
                if waiting.is_empty():
                    break
            unproved = self._open(todo)
            self.explored.add(unproved)
            with run.backwards("check"):
                todo = engine.settle(self._reasons(unproved) - self.explored)
        return waiting

    def _ask(self, facts: SettledFacts, waiting: SettledFacts) -> SettledFacts:
        """Check facts; return the waiting ones that still have no proof."""
        return self._open(waiting) if self._prove(facts) else waiting

    def _open(self, facts: SettledFacts) -> SettledFacts:
        """Return those of the facts that have no proof so far."""
        return self.engine.settle(facts - self._proved(facts))

    def _prove(self, facts: SettledFacts) -> bool:
        """Prove facts that follow via checked ones; return whether there are any."""
        fresh = self.engine.settle(facts - self.checked)
        if fresh.is_empty():
            return False
        self.checked.add(fresh)
        return self._saturate(fresh)

    def _hints(self, facts: SettledFacts) -> SettledFacts:
        """Return facts that are likely to prove cliques among the facts.

        Another name must be derived to equal the representative, often from an explicit
        fact about the other name. There are few of these if the clique has a well-known
        name that thousands of facts mention.
        """
        engine, run = self.engine, self.run
        nodes = engine.settle(facts.within(EQUALITIES) - self.whole)
        if nodes.is_empty():
            return nodes
        pairs = engine.members(nodes, self.old)
        names = engine.derive(_OTHER_NAMES, _over(pairs, run.materialised))
        about = engine.mentioning(names, engine.explicit.within(self.region))
        images = engine.rewrite(about, self.old)
        return engine.settle((images & run.materialised) - run.deleted - self.checked)

    def _reasons(self, facts: SettledFacts) -> Facts:
        """Return facts that could prove facts, except disproved ones (l. 25 to 34)."""
        engine, run = self.engine, self.run
        if facts.is_empty():
            return facts
        possible = run.materialised - (run.deleted - self.images)
        bodies = derive(
            engine,
            self.old_rules.backward,
            positive=possible,
            negative=possible,
            delta_positive=facts,
        )
        # Other names help to prove a fact only if it may hold for some of them. Cliques
        # of one constant have no node, so there is nothing to check.
        partly = engine.settle((facts & self.images) | facts.within(self.derivable))
        nodes = engine.nodes_of(partly, self.old, SAME)
        return bodies | (nodes & possible)

    def _proved(self, facts: SettledFacts) -> SettledFacts:
        """Return those of the facts that are proved, with whole cliques."""
        engine = self.engine
        if not self.gains:
            return engine.no_facts()
        found = engine.rewritten_into(facts, self.new, self.proved)
        found = engine.settle(found | (facts & self.whole))
        if found.is_empty():
            return found
        broken = engine.settle(engine.nodes_of(found, self.old, SAME) - self.whole)
        if broken.is_empty():
            return found
        return engine.settle(found - engine.mentioning(broken, found))

    # ------------------------------------------------------------- forward chaining

    def _saturate(self, facts: SettledFacts) -> bool:
        """Prove facts that follow from explicit ones via checked facts (Algorithm 5).

        Returns whether there are any.
        """
        engine, run = self.engine, self.run
        before = self.gains
        candidates = self._sure(facts)
        with run.forwards("saturate"):
            while not candidates.is_empty():
                candidates = engine.rewrite(candidates, self.new)
                delta = self._admitted(engine.settle(candidates - self.proved))
                if delta.is_empty():
                    break
                self.gains += 1
                equalities = engine.settle(delta.within(EQUALITIES))
                if not equalities.is_empty():
                    rest = engine.settle(delta - equalities)
                    candidates = engine.settle(rest | self._merge(equalities))
                    continue
                self.proved.add(delta)
                self.images.add(engine.rewrite(delta, self.old))
                run.report.proved += delta.size()
                run.round(delta)
                candidates = derive(
                    engine,
                    self.new_rules.delta,
                    positive=self.proved,
                    negative=self.proved,
                    delta_positive=delta,
                )
        return self.gains > before

    def _sure(self, facts: SettledFacts) -> SettledFacts:
        """Return preimages of the facts, and those proved before (l. 36 to 40)."""
        engine = self.engine
        # Nodes of cliques are never explicit: equalities are, and rules derive nodes.
        base = engine.settle(facts - facts.within(EQUALITIES))
        sure: Facts = facts & self.delayed
        if not base.is_empty():
            sure |= self.explicit.kept(engine.preimages(base, self.old))
        if not self.delayed_images.is_empty():
            sure |= engine.rewritten_into(self.delayed_images, self.old, facts)
        return engine.settle(sure)

    def _admitted(self, facts: SettledFacts) -> SettledFacts:
        """Return the proved facts that were checked; the others are delayed."""
        engine = self.engine
        asked = engine.rewritten_into(facts, self.old, self.checked)
        early = engine.settle(facts - asked)
        if not early.is_empty():
            normal = engine.settle(early & engine.rewrite(early, self.old))
            self.delayed.add(normal)
            self.delayed_images = engine.settle(self.delayed_images | (early - normal))
        return asked

    def _merge(self, equalities: SettledFacts) -> SettledFacts:
        """Merge constants that are proved to be equal (Algorithm 6)."""
        setting, engine = self.setting, self.engine
        before = setting.rules(self.new)
        lost = engine.merge(self.new, equalities, LOST, setting.values)
        if lost.is_empty():
            return engine.no_facts()
        self._note_whole(equalities)
        nodes = engine.rewrite(equalities, self.new)
        self.nodes = engine.settle(self.nodes | nodes)
        after = setting.rules(self.new)
        outdated = engine.mentioning(lost, self.proved)
        self.proved.discard(outdated)
        news: Facts = engine.rewrite(outdated, self.new)
        if after is not before:
            self.new_rules = after.proving(self.chosen)
            changed = after.changed_since(before) & self.chosen
            if changed:
                again = after.proving(changed).full
                news |= derive(
                    engine, again, positive=self.proved, negative=self.proved
                )
        return engine.settle(news)

    def _note_whole(self, equalities: SettledFacts) -> None:
        """Record cliques whose members are all proved to be equal."""
        engine = self.engine
        nodes = engine.rewrite(equalities, self.old)
        members = engine.rewrite(engine.members(nodes, self.old), self.new)
        pairs = engine.derive(_BROKEN, _over(members, self.run.materialised))
        broken = engine.rewrite(pairs, self.old)
        self.whole.add(engine.settle(nodes - broken))


def _over(changed: SettledFacts, facts: Facts) -> Views:
    return Views(facts, facts, changed)
