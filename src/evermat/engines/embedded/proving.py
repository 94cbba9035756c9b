"""Which facts have a derivation: a fact that one rule derives is not asked about again.

Where many rules derive the same relation, as those for `person(?x)`, most facts follow
by one or two of them. So these are asked first, and the others only about what is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import numpy as np

from evermat.algebra import Role
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.heads import Heads, find_or_append
from evermat.engines.embedded.settled import Settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Query, QuerySet, Views
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.store import Store

    Run = Callable[[Query, Views, Heads], None]


class Proofs:
    """Asks queries, the most successful first.

    Attributes:
        found: how many facts each query has yielded so far.
    """

    def __init__(self) -> None:
        self.found: WeakKeyDictionary[Query, int] = WeakKeyDictionary()

    def derivable(
        self, queries: QuerySet, views: Views, store: Store, run: Run
    ) -> Settled:
        """Those of the changed facts that a query yields.

        Args:
            queries: each yields facts that it reads as changed ones.
            views: what they read.
            store: where the relations are.
            run: evaluates a query.
        """
        changed = cast("Settled", views.delta_positive)
        proved = {}
        for name, rows in changed.rows.items():
            asked = queries.by_change.get((Role.CHANGED, name), ())
            left, parts = rows, []
            for query in sorted(asked, key=self._successes, reverse=True):
                heads = Heads(len(query.head.operands))
                run(query, replace(views, delta_positive=Settled({name: left})), heads)
                counted = heads.counted()
                if counted is None:
                    continue
                found = find_or_append(store.relations[name], counted)
                self.found[query] = self.found.get(query, 0) + found.size
                parts.append(found)
                if found.size == left.size:
                    break
                left = store.sets.lacking(Settled({name: found}), name, left)
            proved[name] = _joined(parts)
        return Settled(proved)

    def _successes(self, query: Query) -> int:
        return self.found.get(query, 0)


def _joined(parts: list[Rows]) -> Rows:
    if not parts:
        return NO_ROWS
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
