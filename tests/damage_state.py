"""Damages files of a state and looks whether anybody would notice.

`python damage_state.py --count 5000` (or `--seconds 600`) flips bits of data files, log
entries and checkpoints, cuts files short, zeroes blocks, swaps, copies and removes
files. After each damage it opens the latest version, some of those that need the file
and another one, now and then all. Each must be what it was, or be refused by an error
that names a file, and versions that have nothing to do with the file must be what they
were. Now and then the state is restored as the error advises, on a copy.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evermat
from evermat import lake
from evermat.errors import EvermatError
from evermat.lake import integrity
from evermat.lake.layout import CLIQUES, FACTS, TERMS, listed
from evermat.lake.rows import summed_facts
from evermat.lake.state import open_state
from lake.states import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    Damage = Callable[[random.Random, Path, list[Path]], None]

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    far(?x, ?y) :- reach(?x, ?y), not edge(?x, ?y) .
"""
MERGING = RULES + "?x ≈ ?y :- email(?x, ?a), email(?y, ?a) ."
NAMES_A_FILE = re.compile(r"`(_delta_log|part=)\S*`")
RESTORED_TO = re.compile(r"--to (\d+)`")


# -------------------------------------------------------------------------- a state


def build(place: Path, rules: str, seed: int) -> None:
    """A state with updates of every sort, merged files, checkpoints and a way back."""
    chance = random.Random(seed)  # noqa: S311  no secret
    every, integrity.CHECKPOINT_EVERY = integrity.CHECKPOINT_EVERY, 5
    try:
        kb = evermat.KnowledgeBase(rules, engine="reference", state=place)
        kb.insert("edge", [("a", "b"), ("b", 3), (3, 2.5), ("ä ≈", "a")])
        for number in range(5):
            edge = (f"n{number}", chance.choice(["a", "b", 3]))
            kb.update(insert={"edge": [edge]}, batch=("stream", number))
        kb.insert("email", [("a", "@"), ("n1", "@")])
        kb.insert("wide", [(1, 2, 3, "four", 5, 6)])
        kb.delete("edge", [("b", 3)])
        with kb.transaction() as transaction:
            transaction.add_rules("back(?y, ?x) :- edge(?x, ?y) .")
        kb.delete("email", [("n1", "@")])
        lake.restore(place, to=(kb.version or 0) - 2)
        kb = evermat.KnowledgeBase.open(place, engine="reference")
        kb.insert("edge", [("last", "a")])
        lake.vacuum(place, keep=9)
        kb.insert("edge", [("very last", "a")])
    finally:
        integrity.CHECKPOINT_EVERY = every


def stored(place: Path, version: int | None) -> dict[str, Any]:
    """All that a version consists of, as it is stored."""
    state = open_state(place, version=version, must_exist=True)
    table = state._table  # noqa: SLF001  opening an engine for each would take long
    found: dict[str, Any] = {"version": state.version, "program": state.program}
    found["batch"] = state.last_batch("stream")
    if version is None:  # what other readers of Delta tables see
        found["delta"] = set(listed(table.delta))
    for part in (FACTS, CLIQUES):
        tables = [table.read(file) for file in table.files(part)]
        found[part] = _rows(summed_facts(tables))
    terms = [table.read(file) for file in table.files(TERMS)]
    found[TERMS] = {row for each in terms for row in _rows(each)}
    return found


def _rows(table: pa.Table) -> set[tuple[object, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return set(zip(*columns, strict=True))


# ----------------------------------------------------------------- sorts of damage


def flip_a_bit(chance: random.Random, file: Path, others: list[Path]) -> None:
    del others
    _change(chance, file, 1)


def flip_bits(chance: random.Random, file: Path, others: list[Path]) -> None:
    del others
    _change(chance, file, chance.randint(2, 20))


def _change(chance: random.Random, file: Path, times: int) -> None:
    data = bytearray(file.read_bytes())
    for at in chance.sample(range(8 * len(data)), times):
        data[at // 8] ^= 1 << at % 8
    file.write_bytes(data)


def cut_short(chance: random.Random, file: Path, others: list[Path]) -> None:
    del others
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data))])


def zero_a_block(chance: random.Random, file: Path, others: list[Path]) -> None:
    del others
    data = bytearray(file.read_bytes())
    start = chance.randrange(len(data))
    size = min(chance.choice([1, 16, 512]), len(data) - start)
    data[start : start + size] = bytes(size)
    file.write_bytes(data)


def remove(chance: random.Random, file: Path, others: list[Path]) -> None:
    del chance, others
    file.unlink()


def swap(chance: random.Random, file: Path, others: list[Path]) -> None:
    other = _like(chance, file, others)
    mine, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    other.write_bytes(mine)


def copy(chance: random.Random, file: Path, others: list[Path]) -> None:
    file.write_bytes(_like(chance, file, others).read_bytes())


def _like(chance: random.Random, file: Path, others: list[Path]) -> Path:
    return chance.choice([each for each in others if each.parent == file.parent])


def append(chance: random.Random, file: Path, others: list[Path]) -> None:
    del others
    file.write_bytes(file.read_bytes() + chance.randbytes(chance.randint(1, 40)))


SORTS: dict[Damage, int] = {
    flip_a_bit: 70,
    flip_bits: 8,
    cut_short: 5,
    zero_a_block: 5,
    remove: 4,
    swap: 3,
    copy: 3,
    append: 2,
}


# --------------------------------------------------------------------------- trials


@dataclass
class Figures:
    """What came of the trials."""

    trials: int = 0
    opened: int = 0
    refused: int = 0
    verified: int = 0
    restored: int = 0
    unseen: Counter[str] = field(default_factory=Counter)
    sorts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.trials} damages ({dict(self.sorts)}): {self.opened} versions as "
            f"they were, {self.refused} refused, {self.restored} states restored; "
            f"{self.verified} verified, and damage to what nobody reads passed over in "
            f"{dict(self.unseen)}; {len(self.wrong)} wrong"
        )


class Trials:
    """A state, what its versions are, and what becomes of them when it is damaged."""

    def __init__(self, place: Path, rules: str, seed: int, figures: Figures) -> None:
        self.place = place
        self.figures = figures
        self.rewrites = rules == MERGING
        self.chance = random.Random(seed)  # noqa: S311  no secret
        build(place, rules, seed)
        whole = lake.verify(place)
        assert whole.is_whole, whole
        given_up = open_state(place)._table.log.given_up()  # noqa: SLF001
        self.versions = [
            version
            for version in range(max(whole.oldest, 1), whole.latest + 1)
            if version in whole.versions or version in given_up
        ]
        self.expected = {at: stored(place, at) for at in [*self.versions, None]}
        self.in_memory = {at: self.opened(place, at) for at in self.expected}
        self.oldest = whole.oldest
        self.feed = Counter(lake.changes(place, since=whole.oldest))
        self.files = sorted(each for each in place.rglob("*") if each.is_file())
        log = open_state(place)._table.log  # noqa: SLF001
        self.needs = {at: set(log.contents(at).files) for at in self.versions}

    def opened(self, place: Path, version: int | None) -> dict[str, Any]:
        kb = evermat.KnowledgeBase.open(place, engine="reference", version=version)
        if not self.rewrites:
            return contents(kb)
        # No counters are kept where equal constants are rewritten.
        found: dict[str, Any] = {"rules": {str(rule) for rule in kb.rules}}
        for name in kb.predicates:
            found[name] = (set(kb.facts(name)), set(kb.facts(name, "explicit")))
        return {**found, "representatives": set(kb.representatives())}

    def run(self) -> None:
        """Damage a file, look at all versions, and put the file back."""
        file = self.chance.choice(self.files)
        sorts = list(SORTS)
        damage = self.chance.choices(sorts, list(SORTS.values()))[0]
        before = {each: each.read_bytes() for each in self.files}
        damage(self.chance, file, self.files)
        changed = [
            each
            for each, data in before.items()
            if not each.exists() or each.read_bytes() != data
        ]
        if not changed:
            return
        names = [str(each.relative_to(self.place)) for each in changed]
        told = f"{damage.__name__} of {', '.join(names)} ({self.figures.trials})"
        self.figures.trials += 1
        self.figures.sorts[damage.__name__] += 1
        try:
            for problem in self._look(names):
                self.figures.wrong.append(f"{told}: {problem}")
                print(self.figures.wrong[-1], file=sys.stderr, flush=True)  # noqa: T201
        finally:
            for each, data in before.items():
                if each in changed:
                    each.write_bytes(data)

    def _look(self, damaged: list[str]) -> Iterator[str]:
        advice = None
        may_fail = self._touched(damaged)
        for version in self._versions_to_open(may_fail):
            try:
                same = stored(self.place, version) == self.expected[version]
            except EvermatError as error:
                yield from self._refused(version, error, may_fail)
                if version is None:
                    advice = RESTORED_TO.search(str(error))
            except Exception as error:  # noqa: BLE001  that is what is looked for
                yield f"version {version}: {type(error).__name__}: {error}"
            else:
                self.figures.opened += 1
                if not same:
                    yield f"version {version} is another one"
        yield from self._look_from_outside(damaged)
        if advice is not None and self.chance.random() < 0.3:
            yield from self._restored(int(advice[1]))

    def _versions_to_open(self, touched: set[int]) -> list[int | None]:
        """All of them now and then; else the latest, those that are touched, others."""
        if self.chance.random() < 0.05:
            return list(self.expected)
        some = sorted(touched & set(self.versions))
        some = self.chance.sample(some, min(len(some), 2))
        return [None, self.chance.choice(self.versions), *some]

    def _refused(
        self, version: int | None, error: EvermatError, may_fail: set[int]
    ) -> Iterator[str]:
        self.figures.refused += 1
        if not NAMES_A_FILE.search(str(error)):
            yield f"version {version}: no file is named: {error}"
        if version is not None and version not in may_fail:
            yield f"version {version} has nothing to do with it: {error}"

    def _touched(self, damaged: list[str]) -> set[int]:
        """The versions that need one of some files."""
        found = {at for at, needs in self.needs.items() if needs & set(damaged)}
        for name in damaged:
            entry = re.fullmatch(r"_delta_log/(\d+)\.json", name)
            if entry:
                found.add(int(entry[1]))
        return found

    def _look_from_outside(self, damaged: list[str]) -> Iterator[str]:
        version = self.chance.choice([*self.versions, None])
        if self.chance.random() < 0.3:
            yield from self._compared(
                f"opening {version}",
                lambda: self.opened(self.place, version),
                self.in_memory[version],
            )
        if self.chance.random() < 0.1:
            yield from self._compared(
                "the feed",
                lambda: Counter(lake.changes(self.place, since=self.oldest)),
                self.feed,
            )
        if self.chance.random() < 0.5:
            return
        self.figures.verified += 1
        found = lake.verify(self.place)
        if not found.problems + found.left_behind:
            self.figures.unseen[re.sub(r"[0-9a-f]{20,}", "…", damaged[0])] += 1

    @staticmethod
    def _compared(
        name: str, call: Callable[[], Any], expected: object
    ) -> Iterator[str]:
        try:
            if call() != expected:
                yield f"{name} gives something else"
        except EvermatError as error:
            if not NAMES_A_FILE.search(str(error)):
                yield f"{name}: no file is named: {error}"
        except Exception as error:  # noqa: BLE001  that is what is looked for
            yield f"{name}: {type(error).__name__}: {error}"

    def _restored(self, version: int) -> Iterator[str]:
        """Whether the way back that an error names is one."""
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "state"
            shutil.copytree(self.place, place)
            self.figures.restored += 1
            try:
                lake.restore(place, to=version)
                if self.opened(place, None) != self.in_memory[version]:
                    yield f"restored to {version}, it is another one"
                kb = evermat.KnowledgeBase.open(place, engine="reference")
                kb.insert("edge", [("after", "damage")])
                for problem in lake.verify(place).problems:
                    # Older versions stay as they are, and some may be damaged too.
                    if not problem.versions or max(problem.versions) >= version:
                        yield f"restored to {version}: {problem}"
            except Exception as error:  # noqa: BLE001  that is what is looked for
                yield f"restoring {version}: {type(error).__name__}: {error}"


def damage_states(place: Path, seed: int, *, count: int, seconds: float) -> Figures:
    """Damage states, with equal constants and without, until enough was damaged."""
    figures = Figures()
    trials = [
        Trials(place / str(at), rules, seed + at, figures)
        for at, rules in enumerate([RULES, MERGING])
    ]
    end = time.monotonic() + seconds
    while figures.trials < count and time.monotonic() < end:
        trials[figures.trials % len(trials)].run()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = damage_states(
            Path(folder), options.seed, count=options.count, seconds=options.seconds
        )
    print(figures)  # noqa: T201  that is its result
    return min(len(figures.wrong), 100)


if __name__ == "__main__":
    sys.exit(main())
