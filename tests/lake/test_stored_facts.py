"""Facts of a state are used where they lie: in its files."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

import evermat
from evermat.engines.spark import stored_facts
from evermat.engines.spark.engine import SparkEngine
from evermat.engines.spark.session import SessionToCome
from evermat.engines.spark.stored_facts import (
    LARGE,
    ROWS_IN_A_GROUP,
    FactLayout,
    StoredFacts,
)
from evermat.io.digested_parquet import DigestedWriter
from evermat.lake.errors import DamagedStateError
from evermat.lake.layout import FACTS, DataFile
from evermat.lake.rows import files_to_merge
from evermat.lake.table import StateTable
from lake.states import RULES, contents

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from evermat import KnowledgeBase

pytestmark = pytest.mark.spark

SMALL = 5


def no_session() -> SparkSession:
    message = "this was to be done without Spark"
    raise AssertionError(message)


def engine(*, small: int = SMALL) -> SparkEngine:
    """An engine that keeps next to everything on the cluster."""
    return SparkEngine(small=small)


def edges(chance: random.Random, size: int) -> list[tuple[object, ...]]:
    some = [*range(12), *(f"n{at}" for at in range(12))]
    return [(chance.choice(some), chance.choice(some)) for _ in range(size)]


def opened(place: Path, *, small: int = SMALL) -> KnowledgeBase:
    return evermat.KnowledgeBase.open(place, engine=engine(small=small))


@pytest.mark.parametrize("is_here", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_agree_updates_of_opened_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_here: bool
) -> None:
    """What tasks look up is what the driver finds, and both are right."""
    if not is_here:
        monkeypatch.setattr(stored_facts, "ROWS_HERE", 0)
    monkeypatch.setattr(stored_facts, "LARGE", 4)
    chance = random.Random(f"stored {is_here}")  # noqa: S311  repeatable
    twin = evermat.KnowledgeBase(RULES)
    kb = evermat.KnowledgeBase(RULES, engine=engine(), state=tmp_path)
    nodes = [(at,) for at in range(12)]
    for each in (kb, twin):
        each.update(insert={"edge": [(1, 2)], "node": nodes})
    first = edges(chance, 20)
    for each in (kb, twin):
        each.insert("edge", first)
    for _ in range(2):
        kb = opened(tmp_path)
        gone, new = (
            chance.sample(sorted(twin.facts("edge"), key=str), 3),
            edges(chance, 3),
        )
        told = [
            str(each.update(delete={"edge": gone}, insert={"edge": new}))
            for each in (kb, twin)
        ]
        assert told[0] == told[1]
        assert contents(kb) == contents(twin)
        sizes = {name: each["facts"] for name, each in kb.stats()["predicates"].items()}
        assert sizes == {name: twin.count(name) for name in sizes}
    assert contents(evermat.KnowledgeBase.open(tmp_path)) == contents(twin)


def test_opening_and_small_updates_need_no_spark(tmp_path: Path) -> None:
    pairs = [(at, at + 1) for at in range(60)]
    rules = "two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) ."
    twin = evermat.KnowledgeBase(rules)
    for each in (twin, evermat.KnowledgeBase(rules, state=tmp_path)):
        each.insert("edge", pairs)
    to_come = SessionToCome(no_session, {"spark.evermat.small": "64"})
    kb = evermat.KnowledgeBase.open(tmp_path, engine=SparkEngine(to_come))
    assert kb.count("two") == 59
    for each in (kb, twin):
        each.update(delete={"edge": pairs[7:9]}, insert={"edge": [(60, "end")]})
    assert set(kb.facts("two")) == set(twin.facts("two"))
    assert kb.stats()["predicates"]["two"]["facts"] == twin.count("two")
    assert not kb._engine.cluster.is_started  # type: ignore[attr-defined]  # noqa: SLF001
    assert contents(evermat.KnowledgeBase.open(tmp_path)) == contents(twin)


def test_many_changes_since_the_state_was_merged(tmp_path: Path) -> None:
    """What the driver has no room for is summed up on the cluster."""
    chance = random.Random("many")  # noqa: S311  repeatable
    twin = evermat.KnowledgeBase(RULES)
    kb = evermat.KnowledgeBase(RULES, state=tmp_path)
    for each in (kb, twin):
        each.insert("edge", [(at, at + 1) for at in range(14)])
    for _ in range(3):
        gone = chance.sample(sorted(twin.facts("edge"), key=str), 3)
        new = edges(chance, 3)
        for each in (kb, twin):
            each.update(delete={"edge": gone}, insert={"edge": new})
    kb = opened(tmp_path, small=2)
    assert contents(kb) == contents(twin)
    for each in (kb, twin):
        each.update(delete={"edge": [(0, 1), (5, 6)]}, insert={"edge": [(3, "x")]})
    assert contents(kb) == contents(twin)


def test_files_without_sums_are_counted(tmp_path: Path) -> None:
    """As older versions wrote them: in any order, and with nothing in the footer."""
    names = ["b", "a", "b", "c"]
    numbers = {"holds": [1, 1, 1, 0], "given": [1, 0, 1, 0], "c_nr": [2, 0, 1, 0]}
    rows = pa.table(
        {"relation": names, "c0": [3, 1, 2, 9], "c1": [0, 5, 0, 0], **numbers}
        | {"c_r": [0, 4, 0, 1]}
    )
    with (tmp_path / "old.parquet").open("wb") as file:
        writer = DigestedWriter(pa.PythonFile(file), rows.schema)
        writer.write(rows)
        digest = writer.close()
    cluster = engine().cluster
    storage = partial(SubTreeFileSystem, str(tmp_path), LocalFileSystem())
    facts = StoredFacts(cluster, storage, [("old.parquet", digest)], 2)
    assert facts.instances == (2 + 1) + (4 + 1) - 2
    tag = cluster.tag
    assert facts.block("holds").sizes == {tag("a"): 1, tag("b"): 2}
    assert facts.block("n_nr").numbers == {tag("b"): 3}
    asked = pa.table({"tag": [tag("b"), tag("a")], "c0": [2, 1], "c1": [0, 6]})
    assert facts.find_facts(asked).to_pylist() == [
        {"tag": tag("b"), "c0": 2, "c1": 0, "holds": 1, "given": 1, "n_nr": 1, "n_r": 0}
    ]


@pytest.mark.parametrize("holds", [1, -1])
def test_a_run_that_takes_facts_away_is_no_first_level(
    tmp_path: Path, holds: int
) -> None:
    rows = pa.table({"relation": ["a", "b"], "c0": [1, 2], "holds": [1, holds]})
    for name in ("given", "c_nr", "c_r"):
        rows = rows.append_column(name, pa.array([0, 0], pa.int64()))
    layout = FactLayout()
    with (tmp_path / "run.parquet").open("wb") as file:
        writer = DigestedWriter(pa.PythonFile(file), rows.schema)
        for group in layout.arranged(rows):
            writer.write(group)
        digest = writer.close(layout.notes())
    storage = partial(SubTreeFileSystem, str(tmp_path), LocalFileSystem())
    facts = StoredFacts(engine().cluster, storage, [("run.parquet", digest)], 1)
    assert facts.only_adds == (holds == 1)


def test_files_are_arranged_for_skipping() -> None:
    sizes = {"few": 3, "large": LARGE, "other": 5, "vast": ROWS_IN_A_GROUP + 1}
    names = [name for name, size in sizes.items() for _ in range(size)]
    chance = random.Random("arranged")  # noqa: S311  repeatable
    order = chance.sample(range(len(names)), len(names))
    rows = pa.table(
        {
            "relation": names,
            "c0": order,
            **dict.fromkeys(("holds", "given"), [1] * len(names)),
        }
        | dict.fromkeys(("c_nr", "c_r"), [0] * len(names))
    ).take(order)
    layout = FactLayout()
    groups = list(layout.arranged(rows))
    assert [
        (set(group["relation"].to_pylist()), group.num_rows) for group in groups
    ] == [
        ({"few"}, 3),
        ({"large"}, LARGE),
        ({"other"}, 5),
        ({"vast"}, ROWS_IN_A_GROUP),
        ({"vast"}, 1),
    ]
    assert pa.concat_tables(groups).sort_by("c0") == rows.sort_by("c0")
    assert groups[1]["c0"].to_pylist() == sorted(groups[1]["c0"].to_pylist())
    (sums,) = layout.notes().values()
    assert f'"large": [{LARGE}, {LARGE}, {LARGE}, {LARGE}, 0, 0, 0, 0]' in sums


def test_files_that_tasks_wrote_together_are_not_merged_with_each_other() -> None:
    base = [
        DataFile(f"part=facts/run/{at}.parquet", FACTS, 1000, 1) for at in range(20)
    ]
    more = [DataFile(f"part=facts/{at}.parquet", FACTS, 10, 1) for at in range(8)]
    assert files_to_merge(base + more[:-1]) == []
    assert files_to_merge(base + more) == more


def test_damage_is_found_when_a_row_group_is_read(tmp_path: Path) -> None:
    rules = "two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) ."
    pairs = [(at, at + 1) for at in range(60)]
    evermat.KnowledgeBase(rules, state=tmp_path).insert("edge", pairs)
    table = StateTable.open(tmp_path)
    assert table is not None
    (file,) = table.files(FACTS)
    place = tmp_path / file.path
    group = pq.read_metadata(place).row_group(0).column(0)
    data = bytearray(place.read_bytes())
    data[group.data_page_offset + 1] ^= 4
    place.write_bytes(data)
    kb = opened(tmp_path)  # the footer is whole
    with pytest.raises(DamagedStateError, match=file.path):
        kb.insert("edge", [(7, "x")])
