"""Large sets of a state: tasks of Spark read, write and merge the files."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evermat
import failing_tasks
from evermat import lake
from evermat.engines.spark.engine import SparkEngine
from evermat.lake.layout import FACTS
from evermat.lake.table import StateTable

if TYPE_CHECKING:
    from evermat import KnowledgeBase

pytestmark = pytest.mark.spark

RULES = """
    two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .
    end(?x) :- edge(?y, ?x), not start(?x) .
    start(?x) :- edge(?x, ?y) .
"""
EDGES = [(at, f"n{at + 1}") for at in range(0, 40, 2)]
MORE = [(f"n{at}", at + 1) for at in range(1, 40, 2)]


def engine(*, small: int) -> SparkEngine:
    """An engine that keeps next to everything, or nothing, on the cluster."""
    made = SparkEngine()
    made.cluster.small = small
    return made


def contents(kb: KnowledgeBase) -> dict[str, object]:
    return {
        name: (set(kb.counters(name)), set(kb.facts(name, "explicit")))
        for name in kb.predicates
    }


@pytest.mark.parametrize("small", [4, 50_000])
def test_either_engine_opens_what_the_other_wrote(
    tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.lake.on_spark.MANY", small)
    monkeypatch.setattr("evermat.lake.rows.SEVERAL", 3)
    twin = evermat.KnowledgeBase(RULES)
    kb = evermat.KnowledgeBase(RULES, engine=engine(small=small), state=tmp_path)
    for each in (kb, twin):
        each.insert("edge", EDGES + MORE)
    embedded = evermat.KnowledgeBase.open(tmp_path)
    assert contents(embedded) == contents(twin)
    for each in (embedded, twin):
        each.delete("edge", EDGES[3:5])
    again = evermat.KnowledgeBase.open(tmp_path, engine=engine(small=small))
    assert contents(again) == contents(twin)
    for each in (again, twin):
        each.update(delete={"edge": MORE[:8]}, insert={"edge": [("new", "x")]})
    assert contents(evermat.KnowledgeBase.open(tmp_path)) == contents(twin)
    table = StateTable.open(tmp_path)
    assert table is not None
    # Tasks write into folders of their own.
    by_spark = [file for file in table.files(FACTS) if file.path.count("/") > 1]
    assert bool(by_spark) == (small == 4)
    feed = list(lake.changes(tmp_path, since=0))
    held = sum(1 if change.sign == "+" else -1 for change in feed)
    assert held == sum(twin.count(name) for name in twin.predicates)
    for version in lake.history(tmp_path):
        for sign, numbers in (("+", version.added), ("-", version.removed)):
            mine = [each for each in feed if each[:2] == (version.number, sign)]
            assert numbers == Counter(each.predicate for each in mine)


@pytest.mark.slow
def test_files_of_attempts_that_fail_are_not_committed(tmp_path: Path) -> None:
    script = Path(failing_tasks.__file__)
    subprocess.run([sys.executable, script, tmp_path], check=True)
    kb = evermat.KnowledgeBase.open(tmp_path)
    assert set(kb.facts("edge")) == set(failing_tasks.EDGES)
    assert kb.count("pair") == len(failing_tasks.EDGES) - 1
    table = StateTable.open(tmp_path)
    assert table is not None
    committed = {file.path for file in table.files(FACTS)}
    left = lake.vacuum(tmp_path)
    # Every task wrote a file that counts, and another one before that does not.
    assert len(left) == len(committed) > 0
    assert not committed & set(left)
    assert evermat.KnowledgeBase.open(tmp_path).count("edge") == len(kb.facts("edge"))
