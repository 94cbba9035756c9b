"""Random programs and updates for as long as you like: `make fuzz SECONDS=600`.

Every scenario is played with every algorithm on every engine, with modules and without,
and compared with the oracle. A failing one is made smaller and saved as a folder of
`tests/programs`, where it is a test from then on; look at it, fix what is wrong, and
give it a telling name. Scenarios with equality are told by their number, which gives
the same one again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hypothesis import HealthCheck, Phase, given, seed, settings

import equality_scenarios
import equality_skeletons
from closure_scenarios import closure_scenario
from evermat.engine_abilities import UnequalValuesError
from evermat.engines import make_engine
from evermat.engines.embedded import whole_updates
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from evermat.lang.syntax import Atom, Program, Term
from skeletons import scenario as hard_scenario
from strategies import Scenario, scenarios
from tracked import ALGORITHMS, model_of, play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evermat.engine_abilities import EqualityEngine
    from evermat.lang.syntax import Rule
    from oracle import Fact

PROGRAMS = Path(__file__).parent / "programs"
WHOLE_UPDATES = whole_updates.__name__
"""Loaded here, and so in use from the first update on."""
BATCH = 50
"""Scenarios of each sort drawn with one seed."""


def main() -> int:
    """Draw, play and save until the time is over; returns the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engines", default="reference,embedded")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--seed", type=int, default=None, help="start here")
    parser.add_argument("--quick", action="store_true", help="save without shrinking")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    number = random.randrange(10**6) if options.seed is None else options.seed  # noqa: S311
    phases = [Phase.generate] if options.quick else [Phase.generate, Phase.shrink]
    played = failures = 0
    while time.monotonic() < end:
        batch = Batch(options.engines.split(","), options.algorithms.split(","), end)
        error = batch.run_hard(number) or batch.run(number, phases)
        played += batch.played
        if error is not None and batch.failing is not None:
            failures += 1
            folder = save(batch.failing, f"fuzz-{number}")
            print(f"seed {number}: {type(error).__name__}, saved as {folder}")  # noqa: T201
            for note in getattr(error, "__notes__", ()):
                print(f"  {note}")  # noqa: T201
        found = batch.run_equality(number)
        played += batch.played_with_equality
        failures += len(found)
        for line in found:
            print(line)  # noqa: T201
        number += 1
    print(f"{played} scenarios played, {failures} failures")  # noqa: T201
    return failures


class Batch:
    """The scenarios of one seed; the last failing one is the smallest."""

    def __init__(self, engines: list[str], algorithms: list[str], end: float) -> None:
        self.engines = engines
        self.algorithms = algorithms
        self.end = end
        self.played = 0
        self.played_with_equality = 0
        self.failing: Scenario | None = None

    def run_hard(self, number: int) -> Exception | None:
        """Play programs chosen by hand; returns what one of them failed with."""
        for turn in range(BATCH):
            if time.monotonic() > self.end:
                break
            try:
                self._play(hard_scenario(number * BATCH + turn))
                closures = closure_scenario(
                    number * BATCH + turn, change_rules=turn % 2 == 0
                )
                self._play(closures)
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                return error
        return None

    def run_equality(self, number: int) -> list[str]:
        """Play programs with equality; returns which of them failed, and how."""
        found = []
        sorts = (equality_scenarios, equality_skeletons)
        turns = range(number * BATCH, (number + 1) * BATCH)
        for turn, sort, engine in product(turns, sorts, self.engines):
            if time.monotonic() > self.end:
                break
            self.played_with_equality += 1
            new_engine = cast(
                "Callable[[], EqualityEngine]", partial(make_engine, engine)
            )
            try:
                equality_scenarios.play(sort.scenario_of(turn), ("bf",), new_engine)
            except (EqualityError, StratificationError, UnequalValuesError):
                continue  # refused, and rightly so
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                name = f"{sort.__name__}.scenario_of({turn}) on {engine}"
                found.append(f"{name}: {type(error).__name__}: {error}")
        return found

    def _play(self, scenario: Scenario) -> None:
        self.played += 1
        for engine, modules in product(self.engines, (False, True)):
            new_engine = partial(make_engine, engine)
            try:
                play(scenario, self.algorithms, new_engine, modules=modules)
            except Exception as error:
                error.add_note(f"engine: {engine}, modules: {modules}")
                self.failing = scenario
                raise

    def run(self, number: int, phases: Iterable[Phase]) -> Exception | None:
        """Play random programs; returns what the smallest one failed with."""

        @seed(number)
        @settings(
            max_examples=BATCH,
            phases=list(phases),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(scenario=scenarios(max_updates=4, change_rules=number % 2 == 0))
        def play_all(scenario: Scenario) -> None:
            if self.failing is None and time.monotonic() > self.end:
                return
            self._play(scenario)

        try:
            play_all()
        except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
            return error
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
