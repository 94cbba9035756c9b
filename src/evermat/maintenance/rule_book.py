"""The rules of a program, as given and in normal form, and how they change.

A program is a set of rules. Two rules are the same if they differ only in the names of
their variables; a rule with several heads stands for one rule per head.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.lang.normalise import normal_rules, rule_key
from evermat.runtime.garbage import collection_paused

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from evermat.lang.syntax import Rule


class UnknownRuleError(EvermatError, LookupError):
    """A rule was to be removed that the program does not have.

    Attributes:
        rule: the rule.
        nearest: rules of the program that look like it.
    """

    code: ClassVar[str] = "EM513"

    def __init__(self, rule: Rule, nearest: Sequence[str]) -> None:
        self.rule = rule
        self.nearest = tuple(nearest)
        shown = ", ".join(f"`{text}`" for text in nearest)
        super().__init__(
            f"the program has no rule `{rule}`",
            law="only rules of the program can be removed; names of variables do not "
            "matter, the order of atoms does",
            help=f"did you mean {shown}?" if shown else "the program has no such rules",
        )


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Normal rules that a change removes and adds, and requests that had no effect."""

    removed: tuple[Rule, ...] = ()
    added: tuple[Rule, ...] = ()
    ignored: int = 0

    def is_empty(self) -> bool:
        """Whether the program stays what it is."""
        return not self.removed and not self.added


_NO_CHANGE = RuleChange()


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules of a program, by keys that do not depend on names of variables.

    Attributes:
        given: the rules as they were written, each with one head.
        normal: the normal rules.
        uses: how many of the given rules need each normal rule.
    """

    given: Mapping[Hashable, Rule] = field(default_factory=dict)
    normal: Mapping[Hashable, Rule] = field(default_factory=dict)
    uses: Mapping[Hashable, int] = field(default_factory=dict)

    def change(
        self, *, remove: Iterable[Rule], add: Iterable[Rule]
    ) -> tuple[RuleBook, RuleChange]:
        """The rules after a change, and what changed in normal form.

        Raises:
            UnknownRuleError: a rule to remove is not there.
        """
        remove, add = tuple(remove), tuple(add)
        if not remove and not add:  # the usual case, and programs can be large
            return self, _NO_CHANGE
        return self._changed(remove, add)

    @collection_paused()
    def _changed(
        self, remove: tuple[Rule, ...], add: tuple[Rule, ...]
    ) -> tuple[RuleBook, RuleChange]:
        given, normal, uses = dict(self.given), dict(self.normal), dict(self.uses)
        ignored = 0
        for key, rule in {
            rule_key(rule): rule for rule in single_heads(remove)
        }.items():
            if given.pop(key, None) is None:
                raise UnknownRuleError(rule, self._nearest(rule))
            for part in normal_rules((rule,)):
                uses[part] -= 1
        for rule in single_heads(add):
            key = rule_key(rule)
            if key in given:
                ignored += 1
                continue
            given[key] = rule
            for part, normal_rule in normal_rules((rule,)).items():
                normal.setdefault(part, normal_rule)
                uses[part] = uses.get(part, 0) + 1
        _drop_unused(normal, uses)
        removed = (rule for key, rule in self.normal.items() if key not in normal)
        added = (rule for key, rule in normal.items() if key not in self.normal)
        change = RuleChange(tuple(removed), tuple(added), ignored)
        return RuleBook(given, normal, uses), change

    def in_normal_order(self) -> tuple[Rule, ...]:
        """The given rules, in the order of the normal rules that they stand for.

        A book that is made of them has its normal rules in the same order, on which it
        depends what modules take. A rule that went and came back has its old place
        among the normal rules, and a new one among the given.
        """
        places = {key: place for place, key in enumerate(self.normal)}

        def place_of(key: Hashable) -> int:
            if key not in places:
                own = next(iter(normal_rules((self.given[key],))), None)
                return len(places) if own is None else places[own]
            return places[key]

        return tuple(self.given[key] for key in sorted(self.given, key=place_of))

    def _nearest(self, rule: Rule) -> list[str]:
        texts = [str(known) for known in self.given.values()]
        return difflib.get_close_matches(str(rule), texts, n=3, cutoff=0.4)


def _drop_unused(normal: dict[Hashable, Rule], uses: dict[Hashable, int]) -> None:
    unused = [key for key, number in uses.items() if not number]
    for key in unused:
        del uses[key], normal[key]


def single_heads(rules: Iterable[Rule]) -> Iterator[Rule]:
    """The rules, those with several heads as one rule for each."""
    for rule in rules:
        if len(rule.heads) == 1:
            yield rule
        else:
            yield from (replace(rule, heads=(head,)) for head in rule.heads)
