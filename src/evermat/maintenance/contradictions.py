"""Why two values would be equal: the facts from which that follows in one step.

The facts are told as they are kept, so the names that theirs stand for are told, too.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from evermat.algebra import Pattern, Query, QuerySet, Role, Views
from evermat.engine_abilities import UnequalValuesError
from evermat.lang.equality import SAME
from evermat.rule_plans import derive
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from evermat.algebra import Facts, SettledFacts, Snapshot
    from evermat.engine_abilities import EqualityEngine, Representatives
    from evermat.rule_plans import RuleSet

_SHOWN = 6
"""How many facts an error shows, and how many names of a clique."""


def explained(
    error: UnequalValuesError,
    engine: EqualityEngine,
    representatives: Representatives,
    rules: RuleSet,
    equalities: SettledFacts,
    facts: Facts,
) -> UnequalValuesError:
    """The error with the facts that lead to it.

    Args:
        error: names the two values.
        engine: has the facts.
        representatives: the cliques, as far as they were merged.
        rules: derive equality.
        equalities: were derived last, the wrong one among them.
        facts: those that hold.
    """
    links = _links(engine.snapshot(equalities), error.left, error.right)
    wrong = engine.derive(links, Views(facts, facts, equalities))
    if wrong.is_empty():
        wrong = equalities
    bodies = derive(
        engine, rules.backward, positive=facts, negative=facts, delta_positive=wrong
    )
    rows = dict(sorted(_rows(engine.snapshot(bodies)))[:_SHOWN])
    cliques = (c for row in rows.values() for c in _cliques(row, representatives))
    return UnequalValuesError(error.left, error.right, (*rows, *dict.fromkeys(cliques)))


def _links(snapshot: Snapshot, left: Constant, right: Constant) -> QuerySet:
    """What finds the fewest of some equalities that lead from one value to another."""
    nearby: dict[Constant, list[tuple[Constant, Constant]]] = {}
    for row in snapshot.read(SAME).to_pylist() if SAME in snapshot.relations() else ():
        one, other = (Constant(Kind(e["kind"]), e["text"]) for e in row.values())
        nearby.setdefault(one, []).append((one, other))
        nearby.setdefault(other, []).append((one, other))
    reached: dict[Constant, tuple[Constant, Constant]] = {}
    waiting = deque([left])
    while waiting and right not in reached:
        here = waiting.popleft()
        for link in nearby.get(here, ()):
            there = _other_end(link, here)
            if there not in reached and there != left:
                reached[there] = link
                waiting.append(there)
    links: list[tuple[Constant, Constant]] = []
    here = right
    while here in reached and len(links) < _SHOWN:
        links.append(reached[here])
        here = _other_end(reached[here], here)
    return QuerySet(
        tuple(
            Query(
                head=Pattern(SAME, link),
                positive=(Pattern(SAME, link, Role.CHANGED),),
                column_count=0,
                label="equalities of values",
            )
            for link in links
        )
    )


def _other_end(link: tuple[Constant, Constant], end: Constant) -> Constant:
    return link[1] if link[0] == end else link[0]


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, pa.Table]]:
    """Facts as texts, each with its row."""
    for name in snapshot.relations():
        table = snapshot.read(name)
        for at in range(table.num_rows):
            row = table.slice(at, 1)
            terms = [_term(column) for column in row.columns]
            yield f"{name}({', '.join(terms)})", row


def _cliques(row: pa.Table, representatives: Representatives) -> Iterator[str]:
    """The constants of a row that are equal to others, with these."""
    for at in range(row.num_columns):
        normal = representatives.normalised(row.select([at]))
        (members,) = representatives.expanded(normal).columns
        if len(members) > 1:
            names = sorted(_term(members.slice(n, 1)) for n in range(len(members)))
            more = [] if len(names) <= _SHOWN else ["…"]
            yield " ≈ ".join([*names[:_SHOWN], *more])


def _term(column: pa.ChunkedArray) -> str:
    """The only constant of a column."""
    (term,) = column.to_pylist()
    return str(Constant(Kind(term["kind"]), term["text"]))
