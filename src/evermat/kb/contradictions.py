"""Contradictions: the facts derived by rules with the head `false`.

They are facts of auxiliary predicates and maintained like all others. This module lists
and explains them and, on request, refuses updates that add any.
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
from evermat.errors.wording import counted
from evermat.kb.equality import EqualityMaterialisation
from evermat.kb.explanations import explain, explain_rewritten
from evermat.lang.printer import Printer
from evermat.lang.syntax import Atom, Term, is_contradiction
from evermat.maintenance.proof import Fact

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
"""The treatment of updates that add contradictions."""

MOST_GIVEN = 300_000
"""The most explicit facts of a refused update that is repeated to explain it."""

_SHOWN = 3
"""The number of contradictions shown by an error or a warning."""


class UnknownPolicyError(EvermatError, ValueError):
    """An unknown value for the treatment of contradictions."""

    code: ClassVar[str] = "EM568"


def check_policy(policy: object) -> None:
    """Raise an error unless the policy is one of `Policy`."""
    if policy not in get_args(Policy):
        raise UnknownPolicyError(
            f"there is no way to treat contradictions called {policy!r}",
            help='use "refuse", "report" or "ignore"',
        )


@dataclass(frozen=True, eq=False)
class Contradiction:
    """A derived fact of `false`: the body of a rule with this head holds.

    Attributes:
        arguments: the arguments of the head; for an OWL axiom, the axiom and the
            constants that violate it.
    """

    fact: Fact
    prefixes: Mapping[str, str] = field(repr=False)
    prove: Callable[[Fact], Explanation] = field(repr=False)

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The arguments of the head, as Python values."""
        return tuple(each.value for each in self.fact.row)

    def explain(self) -> Explanation:
        """Return the proof from explicit facts and rules."""
        return self.prove(self.fact)

    def __str__(self) -> str:
        atom = Atom(self.fact.relation, tuple(map(Term, self.fact.row)))
        return Printer(self.prefixes).atom(atom)

    def __repr__(self) -> str:
        return f"<Contradiction {self}>"


class ContradictionError(EvermatError, ValueError):
    """An update was refused, since facts would contradict rules; nothing has changed.

    Attributes:
        contradictions: some of the contradictions.
        count: the number of contradictions.
        explanation: the proof of the first, if one was found quickly.
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
            f"the update would lead to {_summary(self.contradictions, count)}",
            reason='contradictions are refused here: `contradictions="refuse"`',
            help="correct the facts or the rules, or let contradictions be reported",
        )

    def render(self) -> str:
        """Return the full text: the message and the proof."""
        first, *others = super().render().splitlines()
        proof = [] if self.explanation is None else str(self.explanation).splitlines()
        return "\n".join([first, *(f"  {line}" for line in proof), *others])


class ContradictionWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Facts contradict rules after an update.

    Attributes:
        count: the number of contradictions that the update added.
    """

    code: ClassVar[str] = "EM916"

    def __init__(self, contradictions: Sequence[Contradiction], count: int) -> None:
        self.count = count
        super().__init__(
            f"the update leads to {_summary(contradictions, count)}",
            help="`kb.contradictions()` lists and explains them",
        )


def warn_of(contradictions: Iterable[Contradiction], count: int) -> None:
    """Warn of the contradictions that an update has added."""
    some = [*islice(contradictions, _SHOWN)]
    warnings.warn(ContradictionWarning(some, count), stacklevel=5)


def _summary(some: Sequence[Contradiction], count: int) -> str:
    shown = ", ".join(map(str, some[:_SHOWN]))
    more = count - min(len(some), _SHOWN)
    rest = f" and {more:,} more" if more else ""
    return f"{counted(count, 'contradiction')}: {shown}{rest}"


# --------------------------------------------------------------------------- reading


def has_contradictions(
    materialisation: Materialisation | EqualityMaterialisation,
) -> bool:
    """Return whether there are rules that derive contradictions."""
    return any(map(is_contradiction, materialisation.engine.relations()))


def contradiction_sizes(outcome: Outcome) -> tuple[int, int]:
    """Return the numbers of contradictions that an update added and removed."""
    added, removed = (
        sum(size for name, size in facts.relations().items() if is_contradiction(name))
        for facts in (outcome.added, outcome.removed)
    )
    return added, removed


class Contradictions:
    """The contradictions of a materialisation."""

    def __init__(
        self,
        materialisation: Materialisation | EqualityMaterialisation,
        own: Sequence[Rule],
        prefixes: Mapping[str, str],
    ) -> None:
        """Prepare to read the contradictions.

        Args:
            materialisation: the facts.
            own: the rules as written.
            prefixes: for displaying IRIs.
        """
        self._materialisation = materialisation
        self._own = own
        self._prefixes = prefixes

    def __len__(self) -> int:
        stored = self._materialisation.engine.statistics()
        return sum(
            size["facts"] for name, size in stored.items() if is_contradiction(name)
        )

    def __iter__(self) -> Iterator[Contradiction]:
        engine = self._materialisation.engine
        for name in sorted(filter(is_contradiction, engine.relations())):
            region = Region(frozenset({name}))
            held = engine.snapshot(engine.materialised.within(region))
            yield from self.among(held, name)

    def added(self, outcome: Outcome) -> Iterator[Contradiction]:
        """Yield the contradictions that an update has added."""
        for name in sorted(filter(is_contradiction, outcome.added.relations())):
            yield from self.among(outcome.added, name)

    def among(self, facts: Snapshot, name: str) -> Iterator[Contradiction]:
        """Yield the contradictions in a snapshot."""
        if facts.relations().get(name, 0):
            for row in _rows(facts.read(name)):
                yield self.of(Fact(name, row))

    def of(self, fact: Fact) -> Contradiction:
        """Return the contradiction of a fact."""
        return Contradiction(fact, self._prefixes, self.explain)

    def explain(self, fact: Fact, *, limit: int | None = None) -> Explanation:
        """Explain why a contradiction holds."""
        materialisation = self._materialisation
        own, prefixes = self._own, self._prefixes
        if isinstance(materialisation, EqualityMaterialisation):
            return explain_rewritten(
                materialisation, fact, own=own, prefixes=prefixes, limit=limit
            )
        return explain(materialisation, fact, own=own, prefixes=prefixes, limit=limit)


def _rows(table: pa.Table) -> Iterator[tuple[Constant, ...]]:
    if not table.num_columns:
        yield ()  # the only fact without arguments
    yield from zip(*map(constants, table.columns), strict=True)


# ---------------------------------------------------------------------------- refusing


class Refused(Exception):  # noqa: N818  a signal that is answered with an error
    """An update would add contradictions.

    Attributes:
        facts: some of them.
        count: the number of contradictions.
    """

    def __init__(self, facts: Sequence[Fact], count: int) -> None:
        super().__init__(count)
        self.facts = facts
        self.count = count


@contextmanager
def refusing(
    materialisation: Materialisation | EqualityMaterialisation,
) -> Iterator[None]:
    """Refuse updates in the block that add contradictions.

    The journal receives the changes that the engine is about to make; if one of them is
    a contradiction, nothing changes.

    Raises:
        Refused: an update would add contradictions.
    """
    journal = materialisation.journal

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

    materialisation.journal = check
    try:
        yield
    finally:
        materialisation.journal = journal
