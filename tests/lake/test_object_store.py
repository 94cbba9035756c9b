"""A state and a pipeline on a store of objects, where nothing can be renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import evermat
from evermat import lake
from evermat.engines.spark import task_files
from evermat.engines.spark.task_files import write_task
from evermat.lake.errors import DamagedStateError, StateConflictError, StateError
from evermat.lake.layout import FACTS
from evermat.lake.log import entry_path
from evermat.lake.table import StateTable
from evermat.pipeline import Pipeline
from evermat.pipeline.stream import StreamError, StreamSource, stream
from object_store import ACCESS
from pipelines import REACH, configured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evermat.pipeline.stream import StreamReport


PAIRS = "pair(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) ."
"""A rule that takes Spark one round."""


@pytest.mark.parametrize(
    "name", ["embedded", pytest.param("spark", marks=pytest.mark.spark)]
)
def test_a_state_is_opened_again_followed_and_vacuumed(
    bucket: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Facts that are on the driver, and are written there.
    monkeypatch.setenv("EVERMAT_SPARK_DRIVER_FACTS", "1000000")
    place = f"{bucket}/state"
    kb = evermat.KnowledgeBase(REACH, engine=name, state=place)
    kb.load({"edge": [(1, 2), (2, 3), ("ä", 1)]})
    for last in range(3, 13):
        kb.insert("edge", [(last, last + 1)])
    before = kb.version
    assert before is not None
    kb.delete("edge", [(2, 3)])

    again = evermat.KnowledgeBase.open(place)
    assert sorted(map(str, again.facts("reach"))) == sorted(map(str, kb.facts("reach")))
    old = evermat.KnowledgeBase.open(place, version=before)
    assert old.contains("reach", (1, 13))
    assert not again.contains("reach", (1, 13))
    changes = list(lake.changes(place, since=before))
    assert {change.sign for change in changes} == {"-"}
    assert {(1, 3), ("ä", 13)} <= {change.values for change in changes}
    assert lake.vacuum(place, keep=1)
    assert evermat.KnowledgeBase.open(place).count("reach") == kb.count("reach")


def test_the_second_of_two_writers_is_told_so(bucket: str) -> None:
    place = f"{bucket}/state"
    first = evermat.KnowledgeBase(REACH, state=place)
    first.insert("edge", [(1, 2)])
    second = evermat.KnowledgeBase.open(place)
    second.insert("edge", [(2, 3)])
    with pytest.raises(StateConflictError):
        first.insert("edge", [(3, 4)])
    assert first.count("edge") == 1
    assert evermat.KnowledgeBase.open(place).count("edge") == 2


def test_damage_is_found_and_a_version_restored(bucket: str) -> None:
    place = f"{bucket}/state"
    kb = evermat.KnowledgeBase(REACH, engine="reference", state=place)
    for node in range(3):
        kb.insert("edge", [(node, node + 1)])
    table = StateTable.open(place)
    assert table is not None
    table.log.write(entry_path(2), b"{}")
    (problem,) = lake.verify(place).problems
    assert problem.file == entry_path(2)
    with pytest.raises(DamagedStateError, match=entry_path(2)):
        evermat.KnowledgeBase.open(place, engine="reference")
    assert lake.restore(place, to=3) == 5
    again = evermat.KnowledgeBase.open(place, engine="reference")
    assert set(again.facts("edge")) == {(0, 1), (1, 2)}
    assert lake.verify(place).is_whole


def test_what_the_store_says_is_told(bucket: str) -> None:
    with pytest.raises(StateError, match="The specified bucket does not exist"):
        evermat.KnowledgeBase(REACH, state=f"{bucket}-not/state")


def test_access_may_be_an_argument(
    bucket: str, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    options = {"AWS_ENDPOINT_URL": store, "AWS_ALLOW_HTTP": "true"}
    options |= {"AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "secret"}
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    place = f"{bucket}/state"
    kb = evermat.KnowledgeBase(REACH, state=place, storage_options=options)
    kb.insert("edge", [(1, 2)])
    assert lake.history(place, storage_options=options)[-1].added == {
        "edge": 1,
        "reach": 1,
    }
    assert lake.read(place, "reach", storage_options=options).num_rows == 1


def test_a_pipeline_reads_and_writes(bucket: str, tmp_path: Path) -> None:
    system, folder = pyarrow.fs.FileSystem.from_uri(bucket)

    def put(name: str, text: str) -> None:
        with system.open_output_stream(f"{folder}/{name}") as sink:
            sink.write(text.encode())

    def rows(name: str) -> list[tuple[object, ...]]:
        table = pq.read_table(f"{folder}/{name}", filesystem=system, partitioning=None)
        return sorted(tuple(row.values()) for row in table.to_pylist())

    config = configured(
        tmp_path,
        f'[program]\ntext = """{REACH}"""',
        f'[state]\npath = "{bucket}/state"',
        f'[[source]]\npredicate = "edge"\npath = "{bucket}/edges/*.csv"',
        f'[[output]]\npredicate = "reach"\npath = "{bucket}/out/reach"',
        f'[[output]]\npredicate = "reach"\npath = "{bucket}/out/feed"',
        'name = "feed"\nmode = "changes"',
    )
    put("edges/a.csv", "from,to\na,b\nb,c\n")
    Pipeline(config).run()
    assert rows("out/reach") == [("a", "b"), ("a", "c"), ("b", "c")]

    # Nothing of the folder that is replaced stays.
    put("out/reach/part-00007.parquet", "left over")
    put("edges/a.csv", "from,to\nb,c\n")
    put("edges/b.csv", "from,to\nc,d\n")
    version = Pipeline(config).update().report.version
    assert rows("out/reach") == [("b", "c"), ("b", "d"), ("c", "d")]
    feed = [row[1:] for row in rows("out/feed") if row[0] == version]
    assert feed == [
        ("+", "b", "d"),
        ("+", "c", "d"),
        ("-", "a", "b"),
        ("-", "a", "c"),
    ]
    assert system.get_file_info(f"{folder}/out/reach.new").type.name == "NotFound"


@pytest.mark.parametrize(
    "engine", ["embedded", pytest.param("spark", marks=pytest.mark.spark)]
)
def test_tasks_of_a_pipeline_read_and_write(
    bucket: str, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "2")
    system, folder = pyarrow.fs.FileSystem.from_uri(bucket)
    edges = pa.table({"from": range(9), "to": [*range(1, 9), None]})
    pq.write_table(edges, f"{folder}/edges.parquet", filesystem=system)
    config = configured(
        tmp_path,
        f'[program]\ntext = "{PAIRS}"',
        f'[[source]]\npredicate = "edge"\npath = "{bucket}/edges.parquet"',
        f'max_rejected = 1\n[rejected]\npath = "{bucket}/rejected"',
        f'[[output]]\npredicate = "pair"\npath = "{bucket}/pair"',
        engine=engine,
    )
    report = Pipeline(config).run().report

    def rows(name: str) -> list[tuple[object, ...]]:
        table = pq.read_table(f"{folder}/{name}", filesystem=system, partitioning=None)
        return sorted(tuple(row.values()) for row in table.to_pylist())

    assert rows("pair") == [(node, node + 2) for node in range(7)]
    ((*wrong, _),) = rows(f"rejected/run={report.run}/edge.parquet")
    assert wrong == ["edge", f"{bucket}/edges.parquet", 8, "to", "no value"]


def put_events(bucket: str, name: str, *edges: tuple[int, int]) -> None:
    """A file of events that insert edges."""
    system, folder = pyarrow.fs.FileSystem.from_uri(bucket)
    with system.open_output_stream(f"{folder}/events/{name}") as sink:
        for edge in edges:
            sink.write(f"+,edge,{edge[0]},{edge[1]}\n".encode())


def follow(bucket: str, engine: str) -> StreamReport:
    return stream(
        evermat.KnowledgeBase(REACH, engine=engine, state=f"{bucket}/state"),
        StreamSource("csv", f"{bucket}/events", {"maxFilesPerTrigger": "1"}),
        app_id="edges",
        checkpoint=f"{bucket}/checkpoint",
        feed=f"{bucket}/feed",
        dead_letters=f"{bucket}/dead",
    )


def test_a_stream_is_followed_and_goes_on(bucket: str) -> None:
    put_events(bucket, "1.csv", (1, 2), (2, 3))
    assert follow(bucket, "embedded").batches == 1
    put_events(bucket, "2.csv", (3, 4))
    put_events(bucket, "3.csv", (4, 5))
    report = follow(bucket, "embedded")
    assert (report.skipped, report.batches, report.bad) == (1, 2, 0)
    feed = DeltaTable(f"{bucket}/feed").to_pyarrow_table()
    kb = evermat.KnowledgeBase.open(f"{bucket}/state")
    assert feed.num_rows == kb.count("edge") + kb.count("reach") == 4 + 10


@pytest.mark.spark
def test_a_stream_on_spark_says_what_it_lacks(bucket: str) -> None:
    put_events(bucket, "1.csv", (1, 2))
    with pytest.raises(StreamError, match="cannot read events as `csv`") as caught:
        follow(bucket, "spark")
    assert "hadoop-aws" in (caught.value.help or "")
    assert evermat.KnowledgeBase.open(f"{bucket}/state").count("edge") == 0


@pytest.mark.spark
def test_tasks_write_and_read_what_is_spread(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "8")
    place = f"{bucket}/state"
    twin = evermat.KnowledgeBase(PAIRS)
    kb = evermat.KnowledgeBase(PAIRS, engine="spark", state=place)
    for each in (kb, twin):
        each.insert("edge", [(node, f"n{node + 1}") for node in range(9)])
        each.insert("edge", [(f"n{node}", node) for node in range(9)])
    table = StateTable.open(place)
    assert table is not None
    assert any(file.path.count("/") > 1 for file in table.files(FACTS))

    for engine in ("embedded", "spark"):
        again = evermat.KnowledgeBase.open(place, engine=engine)
        assert set(again.facts("pair")) == set(twin.facts("pair"))
        assert set(again.counters("pair")) == set(twin.counters("pair"))
    again.delete("edge", [("n3", 3)])
    old = evermat.KnowledgeBase.open(place, version=kb.version)
    assert old.count("pair") == twin.count("pair")
    assert lake.vacuum(place) == []
    twin.delete("edge", [("n3", 3)])
    again = evermat.KnowledgeBase.open(place)
    assert set(again.facts("pair")) == set(twin.facts("pair"))


@pytest.mark.spark
def test_files_of_a_task_that_fails_are_never_seen(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tasks get a function in a function as it is, and all others by their names.
    def failing(*args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        yield from write_task(*args, **options)
        message = "no room is left"
        raise OSError(message)

    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "8")
    place = f"{bucket}/state"
    kb = evermat.KnowledgeBase(PAIRS, engine="spark", state=place)
    kb.insert("edge", [(0, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(task_files, "write_task", failing)
        with pytest.raises(StateError, match="no room is left") as caught:
            kb.insert("edge", [(node, node + 1) for node in range(20)])
    assert caught.value.step.startswith("write `part=facts/")
    assert ACCESS["AWS_SECRET_ACCESS_KEY"] not in str(caught.value.__cause__)
    assert kb.count("pair") == 0
    assert evermat.KnowledgeBase.open(place).count("edge") == 1

    left = lake.vacuum(place)
    assert left
    assert all(name.startswith("part=facts/") for name in left)
    kb.insert("edge", [(node, node + 1) for node in range(20)])
    assert evermat.KnowledgeBase.open(place).count("pair") == 19
