"""Contradictions: what rules with the head `false` derive.

They are facts of auxiliary predicates and maintained like all others; here they are
listed, explained, and, where a knowledge base wants it so, refused.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS, Region
from evermat.columns import constants
from evermat.errors import EvermatError
from evermat.kb.equality import EqualityMaterialisation
from evermat.kb.explanations import explain, explain_rewritten
from evermat.lang.printer import Printer
from evermat.lang.syntax import Atom, Term, is_contradiction
from evermat.maintenance.proof import Fact
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evermat.algebra import Snapshot, StoredChange
    from evermat.explain.explanation import Explanation
    from evermat.kb.materialisation import Materialisation
    from evermat.lang.syntax import Rule
    from evermat.maintenance.driver import Entry
    from evermat.maintenance.update import Outcome
    from evermat.values import Constant, Value

Policy = Literal["refuse", "report", "ignore"]
"""What happens to updates after which there are new contradictions."""

MOST_GIVEN = 300_000
"""Explicit facts with which a refused update is tried elsewhere to explain it."""

_SHOWN = 3
"""Contradictions that an error or a warning shows."""


class UnknownPolicyError(EvermatError, ValueError):
    """A way to treat contradictions that there is not."""

    code: ClassVar[str] = "EM568"


def check_policy(policy: object) -> None:
    """Refuse a policy that there is not."""
    if policy not in get_args(Policy):
        raise UnknownPolicyError(
            f"there is no way to treat contradictions called {policy!r}",
            help='use "refuse", "report" or "ignore"',
        )


@dataclass(frozen=True, eq=False)
class Contradiction:
    """A fact of `false`: something holds that a rule says cannot.

    Attributes:
        arguments: what the head of the rule says of it; of an axiom of OWL, the axiom
            and what it is about.
    """

    fact: Fact
    prefixes: Mapping[str, str] = field(repr=False)
    prove: Callable[[Fact], Explanation] = field(repr=False)

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The arguments of the head, as Python values."""
        return tuple(each.value for each in self.fact.row)

    def explain(self) -> Explanation:
        """The proof: which facts and rules it follows from."""
        return self.prove(self.fact)

    def __str__(self) -> str:
        atom = Atom(self.fact.relation, tuple(map(Term, self.fact.row)))
        return Printer(self.prefixes).atom(atom)

    def __repr__(self) -> str:
        return f"<Contradiction {self}>"


class ContradictionError(EvermatError, ValueError):
    """An update after which facts would contradict rules; nothing has changed.

    Attributes:
        contradictions: some of those that there would be.
        count: how many there would be.
        explanation: the proof of the first, if it was quickly found.
    """

    code: ClassVar[str] = "EM613"

    def __init__(
        self,
        contradictions: Sequence[Contradiction],
        count: int,
        explanation: Explanation | None = None,
    ) -> None:
        self.contradictions = tuple(contradictions)
        self.count = count
        self.explanation = explanation
        super().__init__(
            f"the update would lead to {_told(self.contradictions, count)}",
            reason='contradictions are refused here: `contradictions="refuse"`',
            help="correct the facts or the rules, or let contradictions be reported",
        )

    def render(self) -> str:
        """The full text, the proof after what is wrong."""
        first, *others = super().render().splitlines()
        proof = [] if self.explanation is None else str(self.explanation).splitlines()
        return "\n".join([first, *(f"  {line}" for line in proof), *others])


class ContradictionWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """An update after which facts contradict rules.

    Attributes:
        count: how many contradictions it brought.
    """

    code: ClassVar[str] = "EM916"

    def __init__(self, contradictions: Sequence[Contradiction], count: int) -> None:
        self.count = count
        super().__init__(
            f"the update leads to {_told(contradictions, count)}",
            help="`kb.contradictions()` lists and explains them",
        )


def warn_of(contradictions: Iterable[Contradiction], count: int) -> None:
    """Warn of the contradictions that an update has brought."""
    some = [*islice(contradictions, _SHOWN)]
    warnings.warn(ContradictionWarning(some, count), stacklevel=5)


def _told(some: Sequence[Contradiction], count: int) -> str:
    shown = ", ".join(map(str, some[:_SHOWN]))
    more = count - min(len(some), _SHOWN)
    rest = f" and {more:,} more" if more else ""
    return f"{counted(count, 'contradiction')}: {shown}{rest}"


# --------------------------------------------------------------------------- reading


def has_contradictions(kept: Materialisation | EqualityMaterialisation) -> bool:
    """Whether there are rules that find contradictions."""
    return any(map(is_contradiction, kept.engine.relations()))


def contradiction_sizes(outcome: Outcome) -> tuple[int, int]:
    """How many contradictions an update added and removed."""
    came, left = (
        sum(size for name, size in facts.relations().items() if is_contradiction(name))
        for facts in (outcome.added, outcome.removed)
    )
    return came, left


class Contradictions:
    """The contradictions of a materialisation."""

    def __init__(
        self,
        kept: Materialisation | EqualityMaterialisation,
        own: Sequence[Rule],
        prefixes: Mapping[str, str],
    ) -> None:
        """Read them.

        Args:
            kept: what holds.
            own: the rules that were written.
            prefixes: for showing IRIs.
        """
        self._kept = kept
        self._own = own
        self._prefixes = prefixes

    def __len__(self) -> int:
        stored = self._kept.engine.statistics()
        return sum(
            size["facts"] for name, size in stored.items() if is_contradiction(name)
        )

    def __iter__(self) -> Iterator[Contradiction]:
        engine = self._kept.engine
        for name in sorted(filter(is_contradiction, engine.relations())):
            region = Region(frozenset({name}))
            held = engine.snapshot(engine.materialised.within(region))
            yield from self.among(held, name)

    def added(self, outcome: Outcome) -> Iterator[Contradiction]:
        """Those that an update has brought."""
        for name in sorted(filter(is_contradiction, outcome.added.relations())):
            yield from self.among(outcome.added, name)

    def among(self, facts: Snapshot, name: str) -> Iterator[Contradiction]:
        """Those among copied facts."""
        if facts.relations().get(name, 0):
            for row in _rows(facts.read(name)):
                yield self.of(Fact(name, row))

    def of(self, fact: Fact) -> Contradiction:
        """The contradiction that a fact is."""
        return Contradiction(fact, self._prefixes, self.explain)

    def explain(self, fact: Fact, *, limit: int | None = None) -> Explanation:
        """Why one holds."""
        kept, own, prefixes = self._kept, self._own, self._prefixes
        if isinstance(kept, EqualityMaterialisation):
            return explain_rewritten(
                kept, fact, own=own, prefixes=prefixes, limit=limit
            )
        return explain(kept, fact, own=own, prefixes=prefixes, limit=limit)


def _rows(table: pa.Table) -> Iterator[tuple[Constant, ...]]:
    if not table.num_columns:
        yield ()  # a fact without arguments, of which there is only one
    yield from zip(*map(constants, table.columns), strict=True)


# ---------------------------------------------------------------------------- refusing


class Refused(Exception):  # noqa: N818  a signal that is answered with an error
    """An update would bring contradictions.

    Attributes:
        facts: some of them.
        count: how many there are.
    """

    def __init__(self, facts: Sequence[Fact], count: int) -> None:
        super().__init__(count)
        self.facts = facts
        self.count = count


@contextmanager
def refusing(kept: Materialisation | EqualityMaterialisation) -> Iterator[None]:
    """Let no update in the block bring contradictions.

    The engine tells its journal what it is about to change; where that would be a
    contradiction, nothing is changed.

    Raises:
        Refused: an update would.
    """
    journal = kept.journal

    def check(change: StoredChange, entry: Entry) -> None:
        found: list[Fact] = []
        count = 0
        for name in sorted(filter(is_contradiction, change.relations())):
            *columns, holds = change.read(name).columns[: -len(STORED_NUMBERS) + 1]
            is_new = pc.greater(holds, 0)
            number = pc.sum(is_new).as_py() or 0
            if number:
                names = list(map(str, range(len(columns))))
                new = pa.table([each.filter(is_new) for each in columns], names=names)
                found += [Fact(name, row) for row in _rows(new.slice(0, _SHOWN))]
                count += number
        if count:
            raise Refused(found[:_SHOWN], count)
        if journal is not None:
            journal(change, entry)

    kept.journal = check
    try:
        yield
    finally:
        kept.journal = journal
