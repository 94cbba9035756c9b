"""A process that dies in the middle of an update leaves the old version or the new."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

import crashing_state as crashing
import evermat

KILLED = -signal.SIGKILL


RULES = [crashing.RULES, crashing.MERGING]


def made(path: Path, engine: str, rules: str) -> None:
    kb = evermat.KnowledgeBase(rules, engine=engine, state=path)
    crashing.update(kb, 1)
    assert crashing.is_whole(kb)


def command(path: Path, engine: str, *more: object) -> list[str]:
    script = str(Path(crashing.__file__))
    return [sys.executable, script, str(path), engine, *map(str, more)]


def left_by_a_crash(path: Path, engine: str) -> int:
    """The number of the last update of a state, which must be whole."""
    kb = evermat.KnowledgeBase.open(path, engine=engine)
    assert crashing.is_whole(kb)
    number = kb.last_batch(crashing.APPLICATION)
    assert number is not None
    return number


@pytest.mark.parametrize("rules", RULES, ids=["plain", "merging"])
@pytest.mark.parametrize("points", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_dying_at_any_line_leaves_a_whole_version(
    tmp_path: Path, points: int, rules: str
) -> None:
    # What is killed is the code that writes, so the engine may be the lightest one.
    made(tmp_path, "reference", rules)
    done = subprocess.run(
        command(tmp_path, "reference", "survey", points),
        capture_output=True,
        text=True,
        check=True,
    )
    words = [line.split() for line in done.stdout.splitlines()]
    left = [(int(line[1]), line[2]) for line in words if line[0] == "left"]
    assert len(left) == points
    assert {whole for _, whole in left} == {"True"}
    numbers = [1, *(number for number, _ in left)]
    steps = {after - before for before, after in pairwise(numbers)}
    # Some died before the commit, some after it.
    assert steps >= {0, 1}


@pytest.mark.parametrize("rules", RULES, ids=["plain", "merging"])
def test_dying_at_any_moment_leaves_a_whole_version(tmp_path: Path, rules: str) -> None:
    made(tmp_path, "embedded", rules)
    chance = random.Random(7)  # noqa: S311  no secret
    last = 1
    for _ in range(3):
        with subprocess.Popen(
            command(tmp_path, "embedded"), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            start = time.perf_counter()
            assert process.stdout.readline().startswith("done")
            # At some moment of the next update, or of the one after it.
            time.sleep(chance.uniform(0, 2) * (time.perf_counter() - start))
            process.kill()
            assert process.wait(60) == KILLED
        number = left_by_a_crash(tmp_path, "embedded")
        assert number >= last
        last = number
    assert last > 1


@pytest.mark.slow  # starts Spark for each of the places at which it dies
@pytest.mark.spark
@pytest.mark.parametrize("rules", RULES, ids=["plain", "merging"])
def test_a_driver_that_dies_leaves_a_whole_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str
) -> None:
    # Everything is on the cluster, so that Spark writes the files.
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "5")
    made(tmp_path, "embedded", rules)
    for line in (60, 110):
        done = subprocess.run(
            command(tmp_path, "spark", line), capture_output=True, check=False
        )
        assert done.returncode == KILLED
        assert left_by_a_crash(tmp_path, "embedded") >= 1
