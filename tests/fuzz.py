"""Random programs and updates for as long as you like: `make fuzz SECONDS=600`.

Scenarios of all sorts take turns. Each is played once, and its name decides how: on
which engine, with which algorithms for which updates, with modules or without, and
which updates fail first or are only tried. Facts, both counters and the reported change
are compared with the oracle after every step. A failing scenario is made smaller and
saved as a folder of `tests/programs`, where it is a test from then on; look at it, fix
what is wrong, and give it a telling name. One with equality is not saved; `--again`
plays it by its name.

`python tests/fuzz.py --planted` plants one bug after the other (`planted_bugs`), and
tells how long it takes until each is found.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import aggregate_scenarios
import closure_scenarios
import equality_scenarios
import equality_skeletons
import folded_scenarios
import number_scenarios
import shared_supports
import skeletons
from engine_ways import IN_TURN, new_engine, working
from evermat.algebra.equality import UnequalValuesError
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from evermat.lang.syntax import Atom, Program, Term
from oracle import TooLargeError
from planted_bugs import BUGS
from scaled_scenarios import scaled
from strategies import Scenario, scenarios
from tracked import ALGORITHMS, Tracked, model_of, run_through

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra.engine import Engine
    from evermat.lang.syntax import Rule
    from oracle import Fact

T = TypeVar("T")

PROGRAMS = Path(__file__).parent / "programs"

ENGINES = ("reference", "embedded", IN_TURN, "embedded")
"""Named twice, an engine is drawn more often."""
TURNS = 4
"""So many algorithms take turns in a scenario, one for each update."""
BATCH = 10
"""Scenarios that Hypothesis draws with one seed."""
ROUNDS = 5
"""In one round of so many Hypothesis is asked."""
SECONDS_TO_SHRINK = 30.0
SECONDS_TO_FIND = 120.0
"""How long the search for a planted bug may take, in seconds of one core."""


def _hard(number: int) -> Scenario:
    return scaled(skeletons.scenario(number), number)


def _closures(number: int) -> Scenario:
    return closure_scenarios.closure_scenario(number, change_rules=number % 2 == 0)


def _folded(number: int) -> Scenario:
    return scaled(folded_scenarios.scenario_of(number, updates=3), number)


def _shared(number: int) -> Scenario:
    return scaled(shared_supports.scenario(number), number)


def _recursive(number: int) -> Scenario:
    return scaled(shared_supports.recursive_scenario(number), number)


SORTS: dict[str, Callable[[int], Scenario]] = {
    "hard": _hard,
    "numbers": lambda number: number_scenarios.scenario(2 * number),
    "more numbers": lambda number: number_scenarios.scenario(2 * number + 1),
    "shared supports": _shared,
    "recursive supports": _recursive,
    "closures": _closures,
    "folded": _folded,
    "aggregates": aggregate_scenarios.scenario,
}
EQUALITY = {
    "equality": equality_scenarios.scenario_of,
    "hard equality": equality_skeletons.scenario_of,
}


@dataclass(frozen=True)
class Way:
    """How a scenario is played: all follows from a number."""

    engine: str
    algorithms: tuple[str, ...]
    modules: bool
    compacting: bool
    seed: int

    def play(self, scenario: Scenario) -> None:
        """Run through a scenario."""
        mishaps = random.Random(self.seed)  # noqa: S311  repeatable, not secret
        with working(self.engine, compacting=self.compacting):
            try:
                tracked = Tracked(new_engine(self.engine), modules=self.modules)
                run_through(scenario, tracked, self.algorithms, mishaps)
            except Exception as error:
                error.add_note(f"played {self}")
                raise

    def fails(self, scenario: Scenario) -> bool:
        """Whether a scenario comes to a bad end, whichever it is."""
        try:
            self.play(scenario)
        except TooLargeError:
            return False
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
        return False


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    name: str
    error: Exception
    scenario: Scenario | None = None
    way: Way | None = None

    def __str__(self) -> str:
        lines = [f"{self.name}: {type(self.error).__name__}: {self.error}"[:2000]]
        lines += (f"  {note}" for note in getattr(self.error, "__notes__", ()))
        return "\n".join(lines)


class Fuzzer:
    """Draws and plays, a little of every sort in turn."""

    def __init__(self, engines: Iterable[str], algorithms: Iterable[str]) -> None:
        self.engines = tuple(engines)
        self.algorithms = tuple(algorithms)
        self.played = 0

    def findings(self, start: int) -> Iterator[Finding | None]:
        """What is found, and None after every scenario that was as it should be."""
        for number in count(start):
            for sort in (*SORTS, *EQUALITY):
                yield self.replay(f"{sort} {number}")
            if number % ROUNDS == 0:
                yield self._play_drawn(number)

    def replay(self, name: str) -> Finding | None:
        """Play a scenario by its name, such as `numbers 7`."""
        sort, _, number = name.rpartition(" ")
        if sort in EQUALITY:
            return self._play_equality(name, int(number))
        return self.play(name, partial(SORTS[sort], int(number)))

    def play(self, name: str, draw: Callable[[], Scenario]) -> Finding | None:
        """Play one scenario in the way that its name decides on."""
        self.played += 1
        way, scenario = self._way(name), None
        try:
            scenario = draw()
            way.play(scenario)
        except TooLargeError:
            return None
        except Exception as error:  # noqa: BLE001  any failure is a finding
            return Finding(name, error, scenario, way)
        return None

    def _way(self, name: str) -> Way:
        chance = random.Random(name)  # noqa: S311  repeatable, not secret
        return Way(
            chance.choice(self.engines),
            tuple(chance.choices(self.algorithms, k=TURNS)),
            modules=chance.random() < 0.5,
            compacting=chance.random() < 0.5,
            seed=chance.getrandbits(30),
        )

    def _play_equality(self, name: str, number: int) -> Finding | None:
        self.played += 1
        sort, _, _ = name.rpartition(" ")
        way = self._way(name)
        make = cast("Callable[[], Engine]", partial(new_engine, way.engine))
        try:
            with working(way.engine, compacting=way.compacting):
                equality_scenarios.play(EQUALITY[sort](number), ["bf"], make)
        except (EqualityError, StratificationError, UnequalValuesError):
            return None  # refused, and rightly so
        except Exception as error:  # noqa: BLE001  any failure is a finding
            error.add_note(f"engine: {way.engine}")
            return Finding(name, error)
        return None

    def _play_drawn(self, number: int) -> Finding | None:
        """Play programs that are drawn by Hypothesis."""
        found: list[Finding] = []
        turns = count(number * BATCH)

        @seed(number)
        @settings(
            max_examples=BATCH,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(scenario=scenarios(max_updates=4, change_rules=number % 2 == 0))
        def play_all(scenario: Scenario) -> None:
            turn = next(turns)
            larger = scaled(scenario, turn)
            if not found:
                finding = self.play(f"drawn {turn}", lambda: larger)
                found.extend([] if finding is None else [finding])

        play_all()
        return found[0] if found else None


# ------------------------------------------------------------------ smaller cases


def smaller(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Take away what is not needed for a scenario to fail, as long as there is time."""
    end = time.monotonic() + SECONDS_TO_SHRINK
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _parts(scenario):
            if time.monotonic() > end:
                return scenario
            if fails(candidate):
                scenario, is_smaller = candidate, True
                break
    return scenario


def _parts(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios that have an update, rules or facts less."""
    updates = scenario.updates
    for at in range(len(updates)):
        yield replace(scenario, updates=(*updates[:at], *updates[at + 1 :]))
    for rules in _fewer(scenario.rules):
        yield replace(scenario, rules=rules)
    for facts in _fewer(sorted(scenario.facts, key=repr)):
        yield replace(scenario, facts=frozenset(facts))
    for at, update in enumerate(updates):
        smaller_updates = [
            *(
                replace(update, delete=frozenset(facts))
                for facts in _fewer(sorted(update.delete, key=repr))
            ),
            *(
                replace(update, insert=frozenset(facts))
                for facts in _fewer(sorted(update.insert, key=repr))
            ),
        ]
        for less in smaller_updates:
            yield replace(scenario, updates=(*updates[:at], less, *updates[at + 1 :]))


def _fewer(things: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Without one half or the other, then without each of them."""
    half = len(things) // 2
    if half > 1:
        yield tuple(things[half:])
        yield tuple(things[:half])
    for at in range(len(things)):
        yield (*things[:at], *things[at + 1 :])


# ----------------------------------------------------------------------- commands


def main() -> int:
    """Search until the time is over; returns the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--seed", type=int, default=None, help="start here")
    parser.add_argument("--quick", action="store_true", help="save without shrinking")
    parser.add_argument(
        "--again", metavar="NAME", help="play one scenario, such as `numbers 7`"
    )
    parser.add_argument(
        "--planted",
        nargs="*",
        metavar="BUG",
        help="look for planted bugs: these, or all of them",
    )
    options = parser.parse_args()
    start = random.randrange(10**6) if options.seed is None else options.seed  # noqa: S311
    fuzzer = Fuzzer(options.engines.split(","), options.algorithms.split(","))
    if options.again is not None:
        print(fuzzer.replay(options.again) or "as it should be")  # noqa: T201
        return 0
    if options.planted is not None:
        return look_for_planted(fuzzer, options.planted or list(BUGS), start)
    return search(fuzzer, start, options.seconds, shrink=not options.quick)


def search(fuzzer: Fuzzer, start: int, seconds: float, *, shrink: bool) -> int:
    """Print and save what is found; returns how much that is."""
    end = time.monotonic() + seconds
    failures = 0
    for finding in fuzzer.findings(start):
        if finding is not None:
            failures += 1
            print(finding)  # noqa: T201
            if finding.scenario is not None and finding.way is not None:
                print(f"  saved as {_saved(finding, shrink=shrink)}")  # noqa: T201
        if time.monotonic() > end:
            break
    print(f"{fuzzer.played} scenarios played from {start}, {failures} failures")  # noqa: T201
    return failures


def _saved(finding: Finding, *, shrink: bool) -> Path:
    scenario, way = finding.scenario, finding.way
    assert scenario is not None
    assert way is not None
    if shrink:
        scenario = smaller(scenario, way.fails)
    return save(scenario, f"fuzz-{finding.name.replace(' ', '-')}")


def look_for_planted(fuzzer: Fuzzer, names: Iterable[str], start: int) -> int:
    """Tell how long it takes to find each bug; returns how many are not found."""
    missed = 0
    for name in names:
        begin = time.process_time()
        with pytest.MonkeyPatch.context() as patch:
            BUGS[name].plant(patch)
            found = first_finding(fuzzer, start, SECONDS_TO_FIND)
        seconds = time.process_time() - begin
        missed += found is None
        where = "NOT FOUND" if found is None else found.name
        print(f"{seconds:6.1f} s  {name}: {where}", flush=True)  # noqa: T201
    return missed


def first_finding(fuzzer: Fuzzer, start: int, seconds: float) -> Finding | None:
    """What is found first in so many seconds of one core."""
    end = time.process_time() + seconds
    for finding in fuzzer.findings(start):
        if finding is not None or time.process_time() > end:
            return finding
    return None


# ----------------------------------------------------------------------- saving


def save(scenario: Scenario, name: str) -> Path:
    """Write a scenario as a folder of `tests/programs`, with what the oracle says."""
    folder = PROGRAMS / name
    folder.mkdir(parents=True, exist_ok=True)
    rules, given_facts = scenario.rules, scenario.facts
    _write(folder / "program.dl", rules, given_facts)
    _write_expected(folder, rules, given_facts)
    for number, update in enumerate(scenario.updates, start=1):
        step = folder / f"{number}-update"
        step.mkdir(exist_ok=True)
        _write(step / "delete.dl", (), update.delete & given_facts)
        _write(step / "insert.dl", (), update.insert)
        _write(step / "remove_rules.dl", update.remove_rules, ())
        _write(step / "add_rules.dl", update.add_rules, ())
        kept = tuple(rule for rule in rules if rule not in update.remove_rules)
        rules = kept + update.add_rules
        given_facts = (given_facts - update.delete) | update.insert
        _write_expected(step, rules, given_facts)
    return folder


def _write_expected(
    folder: Path, rules: tuple[Rule, ...], given_facts: frozenset[Fact]
) -> None:
    derived = model_of(rules, given_facts).facts - given_facts
    _write(folder / "expected.dl", (), derived, even_if_empty=True)


def _write(
    path: Path,
    rules: Iterable[Rule],
    facts: Iterable[Fact],
    *,
    even_if_empty: bool = False,
) -> None:
    atoms = [Atom(name, tuple(Term(value) for value in row)) for name, row in facts]
    lines = [str(rule) for rule in rules]
    lines += sorted(str(Program(facts=(atom,))).strip() for atom in atoms)
    if lines or even_if_empty:
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
