"""Audits: compare maintained facts with a materialisation from scratch.

Maintained facts, counters and equalities must equal those of a fresh knowledge base
with the same rules and explicit facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import pyarrow.compute as pc

from evermat.columns import constants
from evermat.errors.wording import counted
from evermat.kb.queries import NoCountersError
from evermat.lang.printer import Printer
from evermat.lang.syntax import Atom, Term
from evermat.results.change import row_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from evermat.results.change import Sort
    from evermat.results.result import Result

_SHOWN = 10


class Compared(Protocol):
    """The methods of a knowledge base that audits compare."""

    @property
    def predicates(self) -> Mapping[str, int]:
        """The predicates."""

    def facts(
        self, predicate: str, sort: Sort = "all", *, limit: int | None = None
    ) -> Result:
        """Return the facts of a predicate."""

    def counters(self, predicate: str) -> Result:
        """Return the facts of a predicate with the number of their derivations."""

    def representatives(self) -> Result:
        """Return the constants that are equal to others."""

    def __len__(self) -> int:
        """Return the number of facts."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that occur more often on one side than on the other.

    Attributes:
        what: `facts`, `explicit facts`, `counters` or `equal constants`.
        predicate: the predicate of the rows.
        missing: the number of rows that only the fresh materialisation has.
        excess: the number of rows that only the maintained facts have.
        examples: some of them, with a sign: `-` for missing rows.
    """

    what: str
    predicate: str
    missing: int
    excess: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        counts = f"{self.missing:,} missing, {self.excess:,} too many"
        examples = (f"  {each}" for each in self.examples)
        return "\n".join([f"{self.what} of {self.predicate}: {counts}", *examples])


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit; true if there are no differences.

    Attributes:
        facts: the number of facts compared.
        differences: the differences found.
    """

    facts: int
    differences: tuple[Difference, ...]

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        title = f"{counted(self.facts, 'fact')} derived again and compared: "
        if not self.differences:
            return f"{title}no difference"
        return "\n".join([title + "differences", *map(str, self.differences)])


def audit(kb: Compared, fresh: Compared) -> Audit:
    """Compare a knowledge base with one that was materialised from scratch."""
    found = []
    for name in kb.predicates:
        for what, read in _SIDES:
            if name in fresh.predicates:
                both = read(kb, name), read(fresh, name)
                found += list(_differences(what, name, *both))
    found += list(_equalities(kb, fresh))
    return Audit(len(fresh), tuple(found))


def _facts(kb: Compared, name: str) -> Result:
    return kb.facts(name)


def _explicit(kb: Compared, name: str) -> Result:
    return kb.facts(name, "explicit")


def _counters(kb: Compared, name: str) -> Result:
    try:
        return kb.counters(name)
    except NoCountersError:
        return kb.facts(name, limit=0)


_SIDES: tuple[tuple[str, Callable[[Compared, str], Result]], ...] = (
    ("facts", _facts),
    ("explicit facts", _explicit),
    ("counters", _counters),
)


def _differences(
    what: str, name: str, kept: Result, fresh: Result
) -> Iterator[Difference]:
    missing, excess = (
        _only_in(one.to_terms(), other.to_terms())
        for one, other in ((fresh, kept), (kept, fresh))
    )
    if missing.num_rows or excess.num_rows:
        signs = (("-", missing), ("+", excess))
        texts = (text for sign, rows in signs for text in _texts(sign, name, rows))
        examples = tuple(islice(texts, _SHOWN))
        yield Difference(what, name, missing.num_rows, excess.num_rows, examples)


def _only_in(one: pa.Table, other: pa.Table) -> pa.Table:
    if not one.num_columns:
        return one.slice(0, max(0, one.num_rows - other.num_rows))
    if not one.num_rows or not other.num_rows:
        return one
    return one.filter(pc.invert(pc.is_in(row_keys(one), value_set=row_keys(other))))


def _texts(sign: str, name: str, rows: pa.Table) -> Iterator[str]:
    columns = [constants(column) for column in rows.slice(0, _SHOWN).columns]
    printer = Printer({})
    for row in zip(*columns, strict=True):
        yield f"{sign} {printer.atom(Atom(name, tuple(map(Term, row))))}"


def _equalities(kb: Compared, fresh: Compared) -> Iterator[Difference]:
    """Yield constants whose cliques differ, whichever member is the representative."""
    kept, again = _classes(kb), _classes(fresh)
    wrong = sorted(
        str(each)
        for each in kept.keys() | again.keys()
        if kept.get(each) != again.get(each)
    )
    if wrong:
        yield Difference(
            "equal constants", "≈", len(again.keys() - kept.keys()),
            len(kept.keys() - again.keys()), tuple(wrong[:_SHOWN]),
        )  # fmt: skip


def _classes(kb: Compared) -> dict[object, frozenset[object]]:
    members: dict[object, set[object]] = {}
    for member, head in kb.representatives().constants():
        members.setdefault(head, {head}).add(member)
    return {each: frozenset(some) for some in members.values() for each in some}
