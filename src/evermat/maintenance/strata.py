"""The strata of a program, as an update finds them: compiled, old rules and new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.algebra import Region
    from evermat.algebra.compile import RuleSet
    from evermat.maintenance.modules import Module


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """One stratum of the new program, with the update of its rules told apart.

    An instance of a rule that stays can be lost or gained; a rule that comes has had no
    instances, so that all those it now has are gained. Rules that go are dealt with
    before the first stratum (`evermat.maintenance.rule_changes`).

    Attributes:
        nonrecursive, recursive: rules that stay.
        new_nonrecursive, new_recursive: rules that come.
        all_recursive: the recursive rules of both sorts.
        holds: the relations of the region.
        reads: the relations in the bodies of the rules.
        modules: recursive rules with algorithms of their own; none of the rules above.
        new_modules: those of the modules that gain a rule.
        is_closed: whether facts that an atom of the stratum's own can match all lie in
            the region. Not so for `[?x, ?p, ?y]` where rules derive some `?p` only.
    """

    index: int
    region: Region
    nonrecursive: RuleSet
    recursive: RuleSet
    new_nonrecursive: RuleSet
    new_recursive: RuleSet
    all_recursive: RuleSet
    holds: frozenset[str]
    reads: frozenset[str]
    is_closed: bool
    modules: tuple[Module, ...] = ()
    new_modules: tuple[Module, ...] = ()

    @property
    def rule_count(self) -> int:
        """How many rules stay."""
        return len(self.nonrecursive.rules) + len(self.recursive.rules)


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The strata of a program, and which of them a relation matters to.

    Attributes:
        region: the facts of all strata; the others can only be given.
        readers: for each relation, the positions of the strata whose rules read it.
        holders: for each relation, the positions of the strata that can derive it.
        changed: the positions of the strata that gain a rule.
    """

    strata: tuple[Stratum, ...]
    region: Region
    readers: Mapping[str, tuple[int, ...]]
    holders: Mapping[str, tuple[int, ...]]
    changed: tuple[int, ...] = ()
