"""Why two values would be equal: facts of one step, and all given facts behind them.

The search begins where merging failed. What was derived by then is still there, so it
is known which facts the wrong equality can follow from.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from evermat.algebra import Pattern, Query, QuerySet, Role, Views
from evermat.algebra.abilities import UnequalValuesError
from evermat.algebra.compile import derive
from evermat.lang.equality import SAME
from evermat.maintenance.equality.proofs import Sources
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from evermat.algebra import Facts, SettledFacts, Snapshot
    from evermat.algebra.abilities import Representatives
    from evermat.maintenance.equality.insertion import Insertion

_SHOWN = 6
"""How many facts an error shows, and how many names of a clique."""

MOST_FACTS = 20_000
MOST_LEVELS = 64
"""How far the search for given facts goes."""


def explained(
    error: UnequalValuesError,
    insertion: Insertion,
    before: Representatives,
    equalities: SettledFacts,
) -> UnequalValuesError:
    """The error with the facts that lead to it.

    Args:
        error: names the two values.
        insertion: failed to merge constants.
        before: the cliques before that.
        equalities: what was to be merged; facts of their representatives.
    """
    engine = insertion.setting.engine
    facts = insertion.facts | insertion.pending
    links = _links(engine.snapshot(equalities), error.left, error.right)
    wrong = engine.derive(links, Views(facts, facts, equalities))
    if wrong.is_empty():
        wrong = equalities
    bodies = derive(
        engine,
        insertion.rules.backward,
        positive=facts,
        negative=facts,
        delta_positive=wrong,
    )
    rows = dict(sorted(_rows(engine.snapshot(bodies)))[:_SHOWN])
    cliques = (name for row in rows.values() for name in _cliques(row, before))
    return UnequalValuesError(
        error.left,
        error.right,
        # Facts are told as they are kept, so the names that theirs stand for, too.
        derivation=(*rows, *dict.fromkeys(cliques)),
        given=_given(insertion, before, wrong, facts),
    )


def _given(
    insertion: Insertion, before: Representatives, wrong: SettledFacts, facts: Facts
) -> dict[str, pa.Table]:
    """Given facts that wrong equalities can follow from, unless they are too many."""
    setting = insertion.setting
    engine, given = setting.engine, setting.given

    def behind(found: SettledFacts) -> SettledFacts:
        kept = given.kept(engine.originals(found, before))
        new = engine.rewritten_into(given.insertions, before, found)
        return engine.settle(kept | new)

    rules = tuple(
        rule
        for rule in setting.program.rules
        if rule in insertion.chosen and rule in setting.component
    )
    sources = Sources(engine, before, rules, wrong, facts=facts, given=behind)
    while not sources.is_whole and sources.size() <= MOST_FACTS:
        if sources.depth == MOST_LEVELS:
            break
        sources.widen(sources.depth + 1)
    return dict(sources.tables())


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
    while here in reached:
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
