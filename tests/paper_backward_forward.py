"""Algorithm 3 of [hu2018], word for word, for the nonlinear closure of a graph.

It counts the rule instances of lines 73 and 74, which is what a search costs. Only the
rules `reach(x, y) :- edge(x, y)` and `reach(x, z) :- reach(x, y), reach(y, z)` are
known here, and only deletions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Pair = tuple[int, int]

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
"""


def closure(edges: Iterable[Pair]) -> set[Pair]:
    """All pairs that are joined by a path."""
    successors: dict[int, set[int]] = {}
    for x, y in edges:
        successors.setdefault(x, set()).add(y)
    found: set[Pair] = set()
    for start, first in successors.items():
        seen: set[int] = set()
        waiting = list(first)
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += successors.get(node, ())
        found |= {(start, node) for node in seen}
    return found


class Closure:
    """The closure of a graph, of which some edges are deleted.

    Attributes:
        backward: how many rule instances were matched from head to body.
        deleted: D.
    """

    def __init__(self, edges: Iterable[Pair], gone: Iterable[Pair]) -> None:
        edges = set(edges)
        self.known = closure(edges)
        self.explicit = edges - set(gone)
        self.after: dict[int, list[int]] = {}
        self.before: dict[int, list[int]] = {}
        for x, y in sorted(self.known):
            self.after.setdefault(x, []).append(y)
            self.before.setdefault(y, []).append(x)
        self.checked: set[Pair] = set()
        self.proved: set[Pair] = set()
        self.delayed: set[Pair] = set()
        self.deleted: set[Pair] = set()
        self.backward = 0
        self._delete_unproved(set(gone))

    def _delete_unproved(self, candidates: set[Pair]) -> None:
        while True:
            delta = []
            for fact in sorted(candidates - self.deleted):
                self._check(fact)
                if fact not in self.proved:
                    delta.append(fact)
            if not delta:
                return
            candidates = set()
            for x, y in delta:
                candidates |= {(x, z) for z in self.after.get(y, ())}
                candidates |= {(w, y) for w in self.before.get(x, ())}
            self.deleted |= set(delta)

    def _check(self, first: Pair) -> None:
        """CHECK; what is left to do for each fact is on a stack."""
        stack: list[tuple[Pair, Iterator[Pair]]] = []
        self._open(first, stack)
        while stack:
            fact, bodies = stack[-1]
            if fact in self.proved:
                stack.pop()
                continue
            body = next(bodies, None)
            if body is None:
                stack.pop()
            else:
                self._open(body, stack)

    def _open(self, fact: Pair, stack: list[tuple[Pair, Iterator[Pair]]]) -> None:
        if fact not in self.checked:
            self._saturate(fact)
            if fact not in self.proved:
                stack.append((fact, self._bodies(fact)))

    def _bodies(self, fact: Pair) -> Iterator[Pair]:
        x, z = fact
        for y in self.after.get(x, ()):
            both = {(x, y), (y, z)}
            if both <= self.known and both.isdisjoint(self.deleted):
                self.backward += 1
                yield (x, y)
                yield (y, z)

    def _saturate(self, fact: Pair) -> None:
        self.checked.add(fact)
        if fact not in self.delayed and fact not in self.explicit:
            return
        candidates = {fact}
        while candidates:
            delta = (candidates & self.checked) - self.proved
            self.delayed |= candidates - self.checked
            self.proved |= delta
            candidates = set()
            for x, y in delta:
                candidates |= {
                    (x, z) for z in self.after.get(y, ()) if (y, z) in self.proved
                }
                candidates |= {
                    (w, y) for w in self.before.get(x, ()) if (w, x) in self.proved
                }
