"""The versions of the facts: what each changed, and how to restore one.

The latest versions are kept in memory, as the changes that made them. If the knowledge
base has a state, older ones are read from there.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.kb.transaction import missing_rules
from evermat.lang.printer import rule_text
from evermat.server.errors import ForgottenVersionError, NotThereError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.server.replicas import Step
    from evermat.values import Constant, Value

    Rows = list[tuple[Value, ...]]

MOST_VERSIONS = 1000
MOST_FACTS = 1_000_000
"""Limit of the changes kept in memory: their number, and the facts in all of them."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the facts.

    Attributes:
        number: counts up from the first.
        time: when it was made.
        title: the title of the update.
        sizes: the numbers of facts of each predicate that it added and removed.
        rules: the numbers of rules that it added and removed.
        restored: the version that it restored, if it did.
    """

    number: int
    time: datetime
    title: str = ""
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rules: tuple[int, int] = (0, 0)
    restored: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes of a version.

    Attributes:
        added, removed: facts by predicate.
        added_rules, removed_rules: rules as strings.
    """

    number: int
    added: Mapping[str, Rows]
    removed: Mapping[str, Rows]
    added_rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    version: Version
    step: Step
    size: int


class History:
    """The versions of a knowledge base since the server was started, and of its state.

    Args:
        place: the place of the state; None if there is none.
        first: the version when the server was started.
    """

    def __init__(self, place: str | None, first: int) -> None:
        self._place = place
        self._kept: deque[_Kept] = deque()
        self._size = 0
        self._lock = Lock()
        self._begin = Version(first, datetime.now(UTC), "serving begins")

    @property
    def oldest(self) -> int:
        """The oldest version whose later changes are in memory."""
        with self._lock:
            return self._oldest()

    def _oldest(self) -> int:
        return self._kept[0].version.number - 1 if self._kept else self.latest

    @property
    def latest(self) -> int:
        """The latest version."""
        return self._kept[-1].version.number if self._kept else self._begin.number

    def note(
        self, kb: KnowledgeBase, step: Step, title: str, restored: int | None = None
    ) -> int:
        """Record an update; return its version.

        An update that changes neither facts nor rules makes none.
        """
        added = missing_rules(step.after, step.before)
        removed = missing_rules(step.before, step.after)
        inserted, deleted = step.change.explicit_sizes
        came, left = step.change.total
        if not (added or removed or inserted or deleted or came or left):
            return self.latest
        number = self.latest + 1 if kb.version is None else kb.version
        version = Version(
            number,
            datetime.now(UTC),
            title,
            dict(step.change.sizes),
            (len(added), len(removed)),
            restored,
        )
        size = came + left + sum(inserted.values()) + sum(deleted.values())
        with self._lock:
            self._kept.append(_Kept(version, step, size))
            self._size += size
            while len(self._kept) > MOST_VERSIONS or (
                self._size > MOST_FACTS and len(self._kept) > 1
            ):
                self._size -= self._kept.popleft().size
        return number

    def versions(self) -> list[Version]:
        """Return all known versions, the latest first."""
        with self._lock:
            found = [each.version for each in reversed(self._kept)]
        if self._place is None:
            return [*found, self._begin] if self.oldest == self._begin.number else found
        from evermat import lake  # noqa: PLC0415  not everybody has a state

        known = {each.number for each in found}
        stored = [
            Version(
                each.number,
                each.time,
                "",
                _sizes(each.added, each.removed),
                restored=each.restored,
            )
            for each in lake.history(self._place)
            if each.is_update and each.number not in known
        ]
        return sorted([*found, *stored], key=lambda each: each.number, reverse=True)

    def since(self, number: int, until: int | None = None) -> Iterator[Difference]:
        """Yield the changes after a version, one version after the other.

        Raises:
            NotThereError: there is no such version yet.
            ForgottenVersionError: it is too old.
        """
        latest = self.latest
        if not 0 <= number <= latest:
            raise NotThereError(
                f"there is no version {number}", help=f"the latest is {latest}"
            )
        last = latest if until is None else min(until, latest)
        with self._lock:
            kept = [each for each in self._kept if number < each.version.number <= last]
            oldest = self._oldest()
        if number < oldest:
            yield from self._stored(number, min(oldest, last))
        for each in kept:
            yield _difference(each.version.number, each.step)

    def _stored(self, number: int, until: int) -> Iterator[Difference]:
        if self._place is None:
            raise ForgottenVersionError(
                f"what came after version {number} is no longer known",
                help="read the facts anew, and follow what changes from then on",
            )
        from evermat import lake  # noqa: PLC0415  not everybody has a state

        found = lake.changes(self._place, since=number, until=until)
        for version, changes in groupby(found, key=lambda each: each.version):
            signs: dict[str, defaultdict[str, Rows]]
            signs = {"+": defaultdict(list), "-": defaultdict(list)}
            for each in changes:
                signs[each.sign][each.predicate].append(each.values)
            yield Difference(version, signs["+"], signs["-"])

    # ------------------------------------------------------------------ restoring

    def undo(self, kb: KnowledgeBase) -> Mapping[str, object]:
        """Return the arguments of `kb.update` that undo the last update.

        Raises:
            NotThereError: there was no update since the server was started.
        """
        with self._lock:
            last = [each.step for each in list(self._kept)[-1:]]
        if not last:
            raise NotThereError("nothing was updated since the server was started")
        return _undoing(kb, last)

    def restore(self, kb: KnowledgeBase, number: int) -> Mapping[str, object]:
        """Return the arguments of `kb.update` that restore a version.

        Raises:
            NotThereError: there is no such version.
            ForgottenVersionError: it is too old.
        """
        if not 0 <= number <= self.latest:
            raise NotThereError(
                f"there is no version {number}", help=f"the latest is {self.latest}"
            )
        with self._lock:
            later = [each.step for each in self._kept if each.version.number > number]
            oldest = self._oldest()
        if number >= oldest:
            return _undoing(kb, later)
        if self._place is None:
            raise ForgottenVersionError(
                f"the facts of version {number} are no longer known",
                help=f"the oldest version to go back to is {oldest}",
            )
        return _as_it_was(kb, KnowledgeBase.open(self._place, version=number))


def _sizes(
    added: Mapping[str, int], removed: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    names = sorted({*added, *removed})
    return {name: (added.get(name, 0), removed.get(name, 0)) for name in names}


def _difference(number: int, step: Step) -> Difference:
    change = step.change
    added, removed = (
        {
            name: read(name).to_list()
            for name, sizes in change.sizes.items()
            if sizes[side]
        }
        for side, read in enumerate((change.added, change.removed))
    )
    return Difference(
        number,
        added,
        removed,
        tuple(map(rule_text, missing_rules(step.after, step.before))),
        tuple(map(rule_text, missing_rules(step.before, step.after))),
    )


def _undoing(kb: KnowledgeBase, steps: list[Step]) -> dict[str, object]:
    """Return the changes that undo some steps, the last one first."""
    rows: defaultdict[str, dict[tuple[Constant, ...], bool]] = defaultdict(dict)
    rules = kb.rules
    for step in reversed(steps):
        inserted, deleted = step.change.explicit_sizes
        for name in inserted:
            found = step.change.inserted(name).constants()
            rows[name].update(dict.fromkeys(found, False))
        for name in deleted:
            found = step.change.deleted(name).constants()
            rows[name].update(dict.fromkeys(found, True))
        rules = step.before
    return {
        "insert": _chosen(rows, stays=True),
        "delete": _chosen(rows, stays=False),
        "add_rules": missing_rules(rules, kb.rules),
        "remove_rules": missing_rules(kb.rules, rules),
    }


def _chosen(
    rows: Mapping[str, Mapping[tuple[Constant, ...], bool]], *, stays: bool
) -> dict[str, list[tuple[Constant, ...]]]:
    chosen = {
        name: [row for row, is_there in some.items() if is_there == stays]
        for name, some in rows.items()
    }
    return {name: some for name, some in chosen.items() if some}


def _as_it_was(kb: KnowledgeBase, old: KnowledgeBase) -> dict[str, object]:
    """Return the changes that make a knowledge base equal to another one."""
    known = kb.predicates
    replace: dict[str, object] = {
        name: old.facts(name, "explicit") if name in old.predicates else []
        for name in known
    }
    return {
        "replace": replace,
        "add_rules": missing_rules(old.rules, kb.rules),
        "remove_rules": missing_rules(kb.rules, old.rules),
    }
