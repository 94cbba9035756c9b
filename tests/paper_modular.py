"""DRed^c-MOD as the paper prints it, for one small program, with its mistakes.

The program has `R` transitive (a module), the ordinary rule
`R(x, b), Q(x, z) → R(x, z)` (the seminaïve module), and two nonrecursive rules that
copy `e` and `f` into `R`. Each correction can be left out, to see what it is good for:

1. line 23 keeps only facts whose nonrecursive count has fallen to zero;
2. `Del` never returns a fact with a positive nonrecursive count;
3. every overdeleted fact leaves X_R.
"""

from __future__ import annotations

from collections import Counter

Fact = tuple[str, str, str]
Facts = set[Fact]


class PaperAlgorithm:
    """Keeps E, I, C_nr, C_r and X_R, and updates them by Algorithm 3."""

    def __init__(self, corrections: set[int]) -> None:
        self.corrections = corrections
        self.explicit: Facts = set()
        self.facts: Facts = set()
        self.nonrecursive: Counter[Fact] = Counter()
        self.recursive: Counter[Fact] = Counter()
        self.external: Facts = set()

    def update(self, *, delete: Facts, insert: Facts) -> None:
        self.gone = {fact for fact in delete if fact[0] != "R"}
        self.come = {fact for fact in insert if fact[0] != "R"}
        self.overdelete(set(delete))
        deleted = {fact for fact in self.gone if fact[0] == "R"}
        if 3 in self.corrections:
            self.external -= deleted
        self.rederive_and_insert(set(insert), deleted)
        self.explicit = (self.explicit - delete) | insert
        self.facts = (self.facts - self.gone) | self.come

    def remaining(self) -> Facts:
        return self.facts - (self.gone - self.come)

    def updated(self) -> Facts:
        return (self.facts - self.gone) | self.come

    # -- overdeletion

    def overdelete(self, delete: Facts) -> None:
        lost = Counter(fact for fact in delete if fact[0] == "R")
        lost.update(("R", x, y) for name, x, y in self.gone if name in "ef")
        self.nonrecursive -= lost
        below = Counter(
            ("R", x, z)
            for name, x, z in self.gone
            if name == "Q" and ("R", x, "b") in self.facts
        )
        self.recursive -= below
        delta = set(lost) | set(below)
        if 1 in self.corrections:
            delta = {fact for fact in delta if not self.nonrecursive[fact]}
        own: list[Facts] = [set(), set()]
        while delta:
            inputs = [delta - mine for mine in own]
            own = [self.delete_paths(inputs[0]), self.delete_instances(inputs[1])]
            self.gone |= delta
            delta = (own[0] | own[1]) - self.gone

    def delete_paths(self, delta: Facts) -> Facts:
        """Algorithm 5."""
        present = self.remaining()
        found: Facts = set()
        queue, seen = list(delta), set(delta)
        self.external -= delta
        following = [
            ("R", u, w)
            for _, u, v in delta
            for name, start, w in present - seen
            if (name, start) == ("R", v)
        ]
        while True:
            for fact in following:
                if fact in present - seen:
                    seen.add(fact)
                    queue.append(fact)
                    if 2 not in self.corrections or not self.nonrecursive[fact]:
                        found.add(fact)
            if not queue:
                return found - delta
            _, v, w = queue.pop()
            following = [("R", u, w) for _, u, end in self.external if end == v]

    def delete_instances(self, delta: Facts) -> Facts:
        """Overdeletion by the ordinary rule, counted."""
        lost = Counter(self.instances(self.remaining(), delta))
        self.recursive -= lost
        return {fact for fact in lost if not self.nonrecursive[fact]} - delta

    def instances(self, present: Facts, delta: Facts) -> list[Fact]:
        return [
            ("R", x, z)
            for name, x, end in delta
            if (name, end) == ("R", "b")
            for other, y, z in present
            if (other, y) == ("Q", x)
        ]

    # -- rederivation and insertion

    def rederive_and_insert(self, insert: Facts, deleted: Facts) -> None:
        gained = Counter(fact for fact in insert if fact[0] == "R")
        gained.update(("R", x, y) for name, x, y in self.come if name in "ef")
        self.nonrecursive += gained
        below = Counter(
            ("R", x, z)
            for name, x, z in self.come
            if name == "Q" and ("R", x, "b") in self.updated()
        )
        self.recursive += below
        reached = self.paths(self.external) & deleted
        counted = {fact for fact in deleted if self.recursive[fact]}
        own = [reached, counted]
        delta = (set(gained) | set(below) | reached | counted) - self.updated()
        while delta:
            self.come |= delta
            inputs = [delta - mine for mine in own]
            self.external |= {fact for fact in inputs[0] if fact[0] == "R"}
            new = Counter(self.instances(self.updated(), delta))
            self.recursive += new
            own = [self.paths(self.external), set(new)]
            delta = (own[0] | own[1]) - self.updated()

    @staticmethod
    def paths(edges: Facts) -> Facts:
        found = set(edges)
        while True:
            more = {
                ("R", u, w) for _, u, v in found for _, start, w in edges if start == v
            } - found
            if not more:
                return found
            found |= more
