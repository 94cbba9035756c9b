"""The search for proofs: instances of rules, and the heights of facts.

Instances that derive certain facts are found by the usual queries, in which rules that
differ only in constants are folded into one; here the matches are read, each with the
rule it belongs to.

The height of a fact is determined by a search backwards from the fact and forwards from
explicit facts. To prove a fact at height h it is enough to know which of its possible
premises have a proof of height h - 1, and so on down to explicit facts. The search
extends the known facts until the fact is proved, in two directions:

- *backwards*: the premises of all instances of the facts of the last level form another
  level. Level 0 is the fact, and facts of level n matter at heights up to h - n only;
- *forwards*: all facts of the next height, starting from the explicit ones.

With levels 0 to b and all facts up to height f, heights up to b + f + 1 can be decided:
the facts of level b that one instance derives from facts of height f have height f + 1,
and so on up to the fact itself. That is an *attempt*.

Each direction explodes on some programs. Backwards is best where a fact has few
instances; but in a transitive closure it has thousands, while few facts are low. So the
next step is always the one that is expected to match fewer rule instances. An attempt
is made before a step that is expected to match many; otherwise, when the steps since
the last one took as much work as all before, as levels can be small and many, for
example in a long chain.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Protocol

from evermat.algebra import Column, Pattern
from evermat.algebra.compile import derive
from evermat.maintenance.proof import Fact, Instance, rows_in
from evermat.values import Constant, boolean_constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra import Engine, Facts, Operand, Query, SettledFacts, Views
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import Rule
    from evermat.maintenance.limits import Watch


_INSTANCE = "~instance"
"""The relation of matches, with a column for each column of the query."""


class Finder:
    """Finds instances of rules by their heads."""

    def __init__(self, rules: RuleSet) -> None:
        self._queries = [
            _FamilyQuery(whole, bound, tuple(family.values()))
            for whole, bound, family in zip(
                rules.full.queries,
                rules.rederive.queries,
                rules.families.values(),
                strict=True,
            )
        ]

    def find(
        self,
        engine: Engine,
        heads: Sequence[Fact],
        views: Views,
    ) -> Iterator[tuple[Fact, Instance]]:
        """Yield all instances over some facts that derive one of the heads.

        Args:
            engine: the engine.
            heads: the facts to derive.
            views: the facts that premises may be, the facts that must be absent, and
                the heads as changed facts.
        """
        for query in self._queries:
            if any(query.may_derive(head) for head in heads):
                table = engine.answer(query.all_columns, views)
                yield from query.read(rows_in(table, table.num_rows))

    def body_patterns(self, head: Fact) -> Iterator[Pattern]:
        """Yield the patterns that premises of instances with a head must match."""
        for query in self._queries:
            if query.may_derive(head):
                yield from query.body_patterns(head)


class _FamilyQuery:
    """A query for rules that differ in constants only."""

    def __init__(self, whole: Query, bound: Query, rules: tuple[Rule, ...]) -> None:
        self._whole = whole
        self._bound = bound
        self._rules = rules

    @cached_property
    def all_columns(self) -> Query:
        """The query with its head bound, whose answers are whole matches."""
        operands: tuple[Operand, ...] = tuple(
            Column(at) for at in range(self._bound.column_count)
        )
        yes = (boolean_constant(value=True),)
        return replace(self._bound, head=Pattern(_INSTANCE, operands or yes))

    @cached_property
    def _by_parameters(self) -> dict[tuple[Constant, ...], Rule]:
        inline = self._whole.inline
        if inline is None:
            return {}
        return dict(zip(inline.rows, self._rules, strict=True))

    @cached_property
    def _choices(self) -> dict[Column, frozenset[Constant]]:
        """The possible values of each parameter."""
        inline = self._whole.inline
        if inline is None:
            return {}
        values = map(frozenset, zip(*inline.rows, strict=True))
        return dict(zip(inline.columns, values, strict=True))

    def may_derive(self, fact: Fact) -> bool:
        """Return whether a fact may match a head, by a cheap and conservative test."""
        head = self._whole.head
        return head.relation == fact.relation and all(
            value in self._choices.get(operand, (value,))
            if isinstance(operand, Column)
            else operand == value
            for operand, value in zip(head.operands, fact.row, strict=True)
        )

    def body_patterns(self, fact: Fact) -> Iterator[Pattern]:
        """Yield the positive patterns of the body, with the constants of a head."""
        known = {
            operand: value
            for operand, value in zip(self._whole.head.operands, fact.row, strict=True)
            if isinstance(operand, Column)
        }
        for pattern in self._whole.positive:
            operands = tuple(
                known.get(operand, operand) if isinstance(operand, Column) else operand
                for operand in pattern.operands
            )
            yield replace(pattern, operands=operands)

    def read(
        self, rows: Iterable[tuple[Constant, ...]]
    ) -> Iterator[tuple[Fact, Instance]]:
        """Convert rows of all columns to instances."""
        head, inline = self._whole.head, self._whole.inline
        parameters = () if inline is None else inline.columns
        variables = self._whole.column_count - len(parameters)
        for row in rows:
            chosen = tuple(row[column.index] for column in parameters)
            rule = self._by_parameters[chosen] if parameters else self._rules[0]
            derived = tuple(
                row[operand.index] if isinstance(operand, Column) else operand
                for operand in head.operands
            )
            yield Fact(head.relation, derived), Instance(rule, row[:variables])


# ------------------------------------------------------------------------------ heights


_FEW = 100_000
"""A number of rule instances found so quickly that no alternative is considered."""


class Search:
    """The search for the height of one fact; inside of a transaction.

    Args:
        engine: the engine.
        target: the fact, which holds and is not explicit.
        rules: all rules, every atom local.
        relevant: returns the rules on which the fact can depend.
        premise_facts: provides the facts that premises can be; without it, the search
            is only forwards.
        negative: facts that must be absent.
        watch: called after every step.
        leaves: facts that need no proof.
    """

    def __init__(  # noqa: PLR0913  most of them are keyword arguments
        self,
        engine: Engine,
        target: SettledFacts,
        rules: RuleSet,
        *,
        relevant: Callable[[], RuleSet],
        premise_facts: PremiseFacts | None,
        negative: Facts,
        watch: Watch,
        leaves: Facts,
    ) -> None:
        self._engine = engine
        self._target = target
        self._rules = rules
        self._negative = negative
        self._watch = watch
        self._leaves = leaves
        self._backwards = _Backwards(
            engine, target, rules, premise_facts, negative, leaves
        )
        self._forwards = _Forwards(engine, relevant, negative, leaves)
        self._proved = engine.growing()
        self._visited = 0
        """The number of rounds of the forward search checked for the target."""

    def run(self) -> list[SettledFacts] | None:
        """Return facts of heights 1, 2 and so on up to the height of the target.

        They include all facts that a lowest proof can contain. None if the target has
        no proof.
        """
        work = before = 0
        steps = 0
        while True:
            is_last = self._backwards.is_over or self._forwards.is_over
            if work >= 2 * before or is_last or self._expected > _FEW:
                found = self._attempt()
                if found is not None or is_last:
                    return found
                before = work
            steps += 1
            found_before = self._engine.matches
            size = self._step()
            work += 1 + self._engine.matches - found_before
            self._watch.round(steps, size)

    @property
    def _expected(self) -> float:
        """Return the expected number of rule instances of the next step."""
        backwards = self._backwards.expected
        return (
            backwards if backwards <= _FEW else min(backwards, self._forwards.expected)
        )

    def _step(self) -> int:
        if self._expected == self._backwards.expected:
            return self._backwards.step()
        return self._forwards.step()

    def _attempt(self) -> list[SettledFacts] | None:
        """Return the heights, if the known facts are enough to prove the target."""
        heights = list(self._forwards.rounds)
        for number in range(self._visited, len(heights)):
            if self._is_target_in(heights[number]):
                return heights[: number + 1]
        self._visited = len(heights)
        levels = self._backwards.up_to
        given = len(heights)
        most = len(levels) + given
        known = self._leaves | self._forwards.facts | self._proved
        while self._backwards.is_over or len(heights) < most:
            at = -1 if self._backwards.is_over else most - len(heights) - 1
            new = self._prove(levels[at], known, heights[-1] if heights else None)
            if new.is_empty():
                break
            heights.append(new)
            if self._is_target_in(new):
                return heights
            self._proved.add(new)
        for facts in heights[given:]:
            self._proved.discard(facts)
        return None

    def _prove(
        self, level: SettledFacts, known: Facts, last: SettledFacts | None
    ) -> SettledFacts:
        """Return the facts of a level that follow from known ones, `last` included.

        They are derived from the facts to be proved, or from those proved last,
        whichever are fewer.
        """
        engine, rules = self._engine, self._rules
        open_facts = engine.settle(level - known)
        if open_facts.is_empty():
            return open_facts
        if last is None or open_facts.size() <= 2 * last.size():
            return derive(
                engine,
                rules.rederive,
                positive=known,
                negative=self._negative,
                delta_positive=open_facts,
            )
        found = derive(
            engine,
            rules.delta,
            positive=known,
            negative=self._negative,
            delta_positive=last,
        )
        return engine.settle(found & open_facts)

    def _is_target_in(self, facts: SettledFacts) -> bool:
        return not self._engine.settle(self._target & facts).is_empty()


class PremiseFacts(Protocol):
    """The facts that premises can be: all that hold, and the cost of reading them.

    Initially, the premises of the target are needed.
    """

    def announce(self, heads: SettledFacts) -> int:
        """Announce facts whose premises are needed; return the cost in instances."""

    def facts(self) -> Facts:
        """Return all facts that premises of the announced facts can be."""


class _Backwards:
    """Levels of facts from which a target can follow, in a growing number of steps.

    Attributes:
        up_to: for each level, its facts and those of all levels before, except explicit
            facts, which need no proof.
        is_over: whether there are no further levels.
        expected: the expected number of rule instances of the next step.
    """

    def __init__(
        self,
        engine: Engine,
        target: SettledFacts,
        rules: RuleSet,
        premise_facts: PremiseFacts | None,
        negative: Facts,
        leaves: Facts,
    ) -> None:
        self._engine = engine
        self._leaves = leaves
        self._rules = rules
        self._premise_facts = premise_facts
        self._negative = negative
        self._last = target
        self.up_to = [target]
        self.is_over = False
        self.expected = inf if premise_facts is None else 0.0

    def step(self) -> int:
        """Find the next level; return its size."""
        engine, heads, premise_facts = self._engine, self._last, self._premise_facts
        if premise_facts is None:
            return 0
        found_before = engine.matches
        premises = derive(
            engine,
            self._rules.backward,
            positive=premise_facts.facts(),
            negative=self._negative,
            delta_positive=heads,
        )
        new = engine.settle(premises - self._leaves - self.up_to[-1])
        if new.is_empty():
            self.is_over = True
            return 0
        self.up_to.append(engine.settle(self.up_to[-1] | new))
        self._last = new
        found = engine.matches - found_before
        self.expected = found * new.size() / heads.size()
        self.expected += premise_facts.announce(new)
        return new.size()


class _Forwards:
    """Facts by height: all facts that rules derive from explicit ones, by rounds.

    Attributes:
        rounds: the facts of heights 1, 2 and so on.
        facts: all of them.
        is_over: whether there are no more.
    """

    def __init__(
        self,
        engine: Engine,
        relevant: Callable[[], RuleSet],
        negative: Facts,
        leaves: Facts,
    ) -> None:
        self._engine = engine
        self._leaves = leaves
        self._negative = negative
        self._relevant = relevant
        self._rules: RuleSet | None = None
        self._found = 0
        self.rounds: list[SettledFacts] = []
        self.facts = engine.growing()
        self.is_over = False

    @cached_property
    def _given(self) -> int:
        """The number of explicit facts."""
        return sum(size["explicit"] for size in self._engine.statistics().values())

    @property
    def expected(self) -> float:
        """The expected number of rule instances of the next step."""
        if not self.rounds:
            return self._given
        sizes = [self._given, *(facts.size() for facts in self.rounds)]
        return self._found * sizes[-1] / max(sizes[-2], 1)

    def step(self) -> int:
        """Find all facts of the next height; return their number."""
        engine = self._engine
        if self._rules is None:
            self._rules = self._relevant()
        found_before = engine.matches
        known = self._leaves | self.facts
        last = self.rounds[-1] if self.rounds else None
        found = derive(
            engine,
            self._rules.full if last is None else self._rules.delta,
            positive=known,
            negative=self._negative,
            delta_positive=last,
        )
        new = engine.settle(found - known)
        if new.is_empty():
            self.is_over = True
            return 0
        self.rounds.append(new)
        self.facts.add(new)
        self._found = engine.matches - found_before
        return new.size()
