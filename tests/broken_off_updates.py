"""Updates that are broken off at every line, and what they leave behind.

`python tests/broken_off_updates.py --updates 20000` plays scenarios in turn, each with
an engine and settings of its own, and interrupts one update after the other:

- `lines`: a signal comes right before the n-th line of our code that an update runs,
  for one n after the other. Its handler raises `KeyboardInterrupt`.
- `moments`: a signal comes after a random time, wherever that is.
- `memory`: the n-th line finds no memory.

After each of them the knowledge base must hold exactly what it held before, or exactly
what the update makes of it: facts, explicit facts, counters and representatives. Both
are known from knowledge bases that were made from scratch. Where memory was lacking, it
may also refuse every further call; with a state, opening that again must give one of
the two. Nothing else is right, and a process that ends is not either.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evermat
from evermat.kb.transaction import TornError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

PACKAGE = str(Path(evermat.__file__).parent)

GUARDS = (
    "interrupts.py",
    "kb/transaction.py",
    "out_of_memory.py",
    "errors.py",
    "errors/__init__.py",
    "api.py",
)
"""Files whose lines do not lack memory: they need none, or tell of the lack."""

Contents = dict[str, Any]
Data = dict[str, list[tuple[Any, ...]]]

CLOSURE = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    far(?x, ?y) :- reach(?x, ?y), not edge(?x, ?y) .
    next(?x, ?y) :- edge(?x, ?z), ?y = ?z + 1 .
    both(?x, ?y, ?z) :- edge(?x, ?y), reach(?y, ?z) .
"""
EDGES: Data = {
    "edge": [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (7, 8)],
    "reach": [(5, 9)],
    "name": [("ann", "bob"), ("bob", "cyn")],
}
PEOPLE = """
    same_as(?x, ?y) :- key(?x, ?k), key(?y, ?k) .
    knows(?x, ?z) :- knows(?x, ?y), knows(?y, ?z) .
    liked(?y) :- knows(?x, ?y), not shy(?y) .
"""
TOTALS = (
    CLOSURE
    + """
    degree(?x, ?n) :- edge(?x, _), ?n = count{ ?y : reach(?x, ?y) } .
    total(?n) :- ?n = sum{ ?k, ?x : edge(?x, ?k), not reach(?k, ?x) } .
    largest(?n) :- ?n = max{ ?d : degree(_, ?d) } .
"""
)
KEYS: Data = {
    "key": [("a", "k1"), ("b", "k1"), ("c", "k2"), ("d", "k2"), ("e", "k3")],
    "knows": [("a", "c"), ("c", "e"), ("d", "a")],
    "shy": [("e",)],
}


@dataclass(frozen=True)
class Scenario:
    """A knowledge base, and an update of it."""

    name: str
    rules: str
    facts: Data
    insert: Data
    delete: Data
    settings: dict[str, Any] = field(default_factory=dict)
    algorithm: str | None = None
    add_rules: str | None = None
    has_state: bool = False

    def make(self, folder: Path | None = None) -> evermat.KnowledgeBase:
        """The knowledge base before the update."""
        settings = dict(self.settings)
        if folder is not None:
            settings["state"] = folder
        made = evermat.KnowledgeBase(self.rules, **settings)
        made.load(self.facts)
        return made

    def update(self, kb: evermat.KnowledgeBase) -> None:
        """The update that is broken off."""
        kb.update(
            insert=self.insert,
            delete=self.delete,
            add_rules=self.add_rules,
            algorithm=self.algorithm,
        )

    def undo(self, kb: evermat.KnowledgeBase) -> None:
        """Its contrary."""
        kb.update(insert=self.delete, delete=self.insert, remove_rules=self.add_rules)

    def after(self) -> Contents:
        """What holds after the update, derived from scratch."""
        facts = {
            name: [
                *(row for row in rows if row not in self.delete.get(name, ())),
                *self.insert.get(name, ()),
            ]
            for name, rows in self.facts.items()
        }
        rules = self.rules + (self.add_rules or "")
        return contents(Scenario("", rules, facts, {}, {}, self.settings).make())


_CHANGE: dict[str, Any] = {
    "insert": {"edge": [(5, 6), (8, 1)], "name": [("cyn", "dan")]},
    "delete": {"edge": [(2, 3), (7, 8)], "reach": [(5, 9)]},
}
_PEOPLE: dict[str, Any] = {
    "insert": {"key": [("c", "k3")], "knows": [("e", "f")]},
    "delete": {"key": [("b", "k1")], "shy": [("e",)]},
}
_RULE = "far(?x, ?z) :- far(?x, ?y), reach(?y, ?z) ."


def scenarios() -> Iterator[Scenario]:
    """Every engine, algorithm and way to keep facts."""
    for algorithm in ("dred-c", "bf-c", "remat", "auto"):
        name = f"embedded {algorithm}"
        yield Scenario(name, CLOSURE, EDGES, **_CHANGE, algorithm=algorithm)
    bare = {"counters": False}
    for algorithm in ("bf", "dred", "fp"):
        name = f"embedded {algorithm}, no counters"
        yield Scenario(
            name, CLOSURE, EDGES, **_CHANGE, settings=bare, algorithm=algorithm
        )
    yield Scenario("embedded rules", CLOSURE, EDGES, **_CHANGE, add_rules=_RULE)
    yield Scenario("embedded aggregates", TOTALS, EDGES, **_CHANGE)
    yield Scenario("embedded equality", PEOPLE, KEYS, **_PEOPLE)
    yield Scenario("embedded state", CLOSURE, EDGES, **_CHANGE, has_state=True)
    yield Scenario("equality state", PEOPLE, KEYS, **_PEOPLE, has_state=True)
    slow = {"engine": "reference"}
    yield Scenario("reference", CLOSURE, EDGES, **_CHANGE, settings=slow)
    yield Scenario("reference aggregates", TOTALS, EDGES, **_CHANGE, settings=slow)
    yield Scenario("reference equality", PEOPLE, KEYS, **_PEOPLE, settings=slow)


def spark_scenarios() -> Iterator[Scenario]:
    """The same on Spark, where an update takes a second or more."""
    for limit, place in (("5000000", "driver"), ("0", "distributed")):
        settings = {"engine": "spark", "spark": spark_session(limit)}
        yield Scenario(f"spark {place}", CLOSURE, EDGES, **_CHANGE, settings=settings)


def spark_session(driver_facts: str) -> Any:
    """A session that keeps so many facts on the driver."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  not everybody has it

    builder = SparkSession.builder.master("local[2]")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    session = builder.getOrCreate().newSession()
    session.conf.set("spark.evermat.driver_facts", driver_facts)
    return session


def contents(kb: evermat.KnowledgeBase) -> Contents:
    """All that can be known of a knowledge base."""
    found: Contents = {"~same": sorted(map(str, kb.representatives()))}
    for name in kb.predicates:
        found[name] = sorted(map(str, kb.facts(name)))
        found[f"{name} given"] = sorted(map(str, kb.facts(name, "explicit")))
        try:
            found[f"{name} counted"] = sorted(map(str, kb.counters(name)))
        except evermat.EvermatError:
            continue  # no counters are kept
    return {name: rows for name, rows in found.items() if rows}


class WrongError(AssertionError):
    """What is left behind is neither what was nor what should be."""


class Trial:
    """One scenario, of which updates are broken off again and again."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.folder = folder
        self.ends: Counter[str] = Counter()
        self._made = 0
        self.after = scenario.after()
        self._renew()
        self.before = contents(self.kb)
        scenario.update(self.kb)
        self._require(self.after, "an update that nobody breaks off")
        scenario.undo(self.kb)
        self._require(self.before, "an undone update")

    def _renew(self) -> None:
        place = None
        if self.scenario.has_state:
            self._made += 1
            place = self.folder / f"{self.scenario.name}-{self._made}"
        self.place = place
        self.kb = self.scenario.make(place)

    def _require(self, wanted: Contents, what: str) -> None:
        if contents(self.kb) != wanted:
            raise WrongError(f"{self.scenario.name}: {what} is wrong")

    def play(self, what: str, break_off: Callable[[Callable[[], None]], bool]) -> bool:
        """Break one update off; whether it was broken off at all.

        Args:
            what: says how, for messages.
            break_off: runs the update, and whether something came in between.
        """
        came = False
        try:
            came = break_off(lambda: self.scenario.update(self.kb))
        except (KeyboardInterrupt, MemoryError) as error:
            came = True
            self.ends[type(error).__name__] += 1
        else:
            self.ends["finished"] += 1
        self._look(what)
        return came

    def _look(self, what: str) -> None:
        """Compare what is left, and go back to the beginning."""
        try:
            found = contents(self.kb)
        except TornError:
            self.ends["refused"] += 1
            if self.place is None:
                self._renew()
                return
            self.kb = evermat.KnowledgeBase.open(self.place)
            found = contents(self.kb)
        if found == self.after:
            self.ends["after"] += 1
            self.scenario.undo(self.kb)
            self._require(self.before, f"what is undone after {what}")
        elif found == self.before:
            self.ends["before"] += 1
        else:
            differences = {
                name: (self.before.get(name), self.after.get(name), found.get(name))
                for name in {*found, *self.before, *self.after}
                if found.get(name) not in (self.before.get(name), self.after.get(name))
            }
            raise WrongError(f"{self.scenario.name}, {what}: {differences}")


def at_line(
    number: int, act: Callable[[FrameType], None], is_ours: Callable[[CodeType], bool]
) -> Callable[[Callable[[], None]], bool]:
    """Have something happen before the n-th line of some of our files."""

    def run(update: Callable[[], None]) -> bool:
        left = number
        came = False

        def in_frame(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left, came
            if event == "line":
                left -= 1
                if left == 0:
                    came = True
                    sys.settrace(None)
                    act(frame)
            return in_frame

        def at_call(frame: FrameType, event: str, _: object) -> Any:
            del event
            return in_frame if is_ours(frame.f_code) else None

        sys.settrace(at_call)
        try:
            update()
        finally:
            sys.settrace(None)
        return came

    return run


def send_signal(_: FrameType) -> None:
    """What Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


def lack_memory(_: FrameType) -> None:
    """What an allocation does that fails."""
    raise MemoryError


def is_ours(code: CodeType) -> bool:
    """Whether signals come in a function."""
    return code.co_filename.startswith(PACKAGE)


def needs_memory(code: CodeType) -> bool:
    """Whether memory can lack in a function; what `__del__` calls is one of its own."""
    return (
        is_ours(code)
        and not code.co_filename.endswith(GUARDS)
        and code.co_name != "__del__"
    )


def at_moment(seconds: float) -> Callable[[Callable[[], None]], bool]:
    """Have a signal come after some time."""

    def run(update: Callable[[], None]) -> bool:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        former = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            update()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        return True

    return run


def play_lines(trial: Trial, most: int, *, memory: bool) -> int:
    """Break updates off at all lines, or at some of them; how many there were."""
    act, where = (lack_memory, needs_memory) if memory else (send_signal, is_ours)
    lines = line_count(trial, where)
    chosen = random.sample(range(1, lines + 1), min(most, lines))
    return sum(
        trial.play(
            f"{'no memory' if memory else 'a signal'} at line {number} of {lines}",
            at_line(number, act, where),
        )
        for number in sorted(chosen)
    )


def line_count(trial: Trial, where: Callable[[CodeType], bool]) -> int:
    """How many lines of ours an update runs, once everything is loaded."""
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count if event != "call" or where(frame.f_code) else None

    sys.settrace(count)
    trial.scenario.update(trial.kb)
    sys.settrace(None)
    trial.scenario.undo(trial.kb)
    return lines


def play_moments(trial: Trial, updates: int) -> int:
    """Break updates off at random moments."""
    start = time.perf_counter()
    trial.scenario.update(trial.kb)
    usual = time.perf_counter() - start
    trial.scenario.undo(trial.kb)
    for _ in range(updates):
        seconds = max(random.random() * 1.2 * usual, 1e-6)  # noqa: S311
        trial.play(f"a signal after {seconds:.6f} s", at_moment(seconds))
    return updates


def end_at_once(unraisable: sys.UnraisableHookArgs) -> None:
    """Take what is only printed, because nobody hears of it, for a mistake."""
    sys.__unraisablehook__(unraisable)
    print("an error came where nobody hears of it")  # noqa: T201
    os._exit(1)


def main() -> None:
    """Play all scenarios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1000, help="how many in all")
    parser.add_argument("--only", default="", help="scenarios whose name has this")
    parser.add_argument(
        "--mode", choices=("lines", "moments", "memory"), action="append"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spark", action="store_true", help="on Spark")
    options = parser.parse_args()
    random.seed(options.seed)
    sys.unraisablehook = end_at_once
    # A shell has processes in the background ignore the signal, and Python heeds that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    every = spark_scenarios() if options.spark else scenarios()
    chosen = [each for each in every if options.only in each.name]
    modes = options.mode or ["lines", "moments", "memory"]
    share = options.updates // (len(chosen) * len(modes)) + 1
    total = 0
    for scenario in chosen:
        for mode in modes:
            with tempfile.TemporaryDirectory() as folder:
                trial = Trial(scenario, Path(folder))
                start = time.perf_counter()
                if mode == "moments":
                    done = play_moments(trial, share)
                else:
                    done = play_lines(trial, share, memory=mode == "memory")
            if mode == "lines" and not trial.ends["KeyboardInterrupt"]:
                raise WrongError(f"{scenario.name}: no signal was answered")
            total += done
            seconds = time.perf_counter() - start
            ends = ", ".join(f"{end} {n}" for end, n in sorted(trial.ends.items()))
            print(  # noqa: T201  that is what it is for
                f"{scenario.name:32} {mode:8} {done:6} in {seconds:5.0f} s: {ends}",
                flush=True,
            )
    print(f"{total} updates broken off, none went wrong")  # noqa: T201


if __name__ == "__main__":
    main()
