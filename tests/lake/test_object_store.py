"""A state and a pipeline on a store of objects, where nothing can be renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import evermat
from evermat import lake
from evermat.lake.errors import StateConflictError, StateError
from evermat.pipeline import Pipeline
from pipelines import REACH, configured

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "gathered"),
    [
        ("embedded", "0"),
        pytest.param("spark", "0", marks=pytest.mark.spark),
        pytest.param("spark", "1000000", marks=pytest.mark.spark),
    ],
)
def test_a_state_is_opened_again_followed_and_vacuumed(
    bucket: str, name: str, gathered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_SPARK_GATHERED", gathered)
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "2")
    monkeypatch.setattr("evermat.lake.on_spark.MANY", 2)
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


@pytest.mark.spark
def test_an_error_says_what_spark_lacks_for_the_place(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "2")
    kb = evermat.KnowledgeBase(REACH, engine="spark", state=f"{bucket}/state")
    with pytest.raises(StateError, match="No FileSystem for scheme"):
        kb.insert("edge", [(node, node + 1) for node in range(20)])
    assert kb.count("reach") == 0
    assert evermat.KnowledgeBase.open(f"{bucket}/state").count("reach") == 0
