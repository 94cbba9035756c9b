"""What does not fit into memory: sorted, in parts, given back, or said plainly."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import evermat
from evermat.engines.spark import blocks, decoding, failures, joins
from evermat.engines.spark.checkpoint_place import require_place
from evermat.engines.spark.engine import SparkEngine
from evermat.engines.spark.failures import SparkStepError, plain_failures, with_room
from evermat.engines.spark.session import let_go, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.engines.spark.blocks import Cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    alone(?x) :- node(?x), not reach(?x, "n0") .
    shown(?x, ?n) :- reach(?x, "n7"), ?n = concat(?x, "!") .
"""
EDGES = [(f"n{at}", f"n{(7 * at + 3) % 40}") for at in range(40)]
NODES = [(f"n{at}",) for at in range(60)]
MIXED = [(at, at if at % 2 else f"text {at}", float(at)) for at in range(500)]


def base(**limits: int) -> tuple[evermat.KnowledgeBase, Cluster]:
    """A knowledge base with next to everything on the cluster."""
    engine = SparkEngine()
    dictionary = engine.cluster.dictionary
    dictionary.limit = limits.pop("constants", dictionary.limit)
    for name, limit in {"small": 3, **limits}.items():
        setattr(engine.cluster, name, limit)
    return evermat.KnowledgeBase(RULES, engine=engine, modules=False), engine.cluster


# ------------------------------------------------------------------------- joins


def test_sides_without_room_for_a_table_are_sorted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joins, "BROADCAST", 5)
    plans: list[str] = []
    for hashed in (0, 1 << 30):
        kb, cluster = base(hashed=hashed)
        kb.load({"edge": EDGES, "node": NODES})
        kb.delete("edge", EDGES[:5])
        expected = evermat.KnowledgeBase(RULES, engine="reference")
        expected.load({"edge": EDGES[5:], "node": NODES})
        for predicate in ("reach", "alone", "shown"):
            assert set(kb.facts(predicate)) == set(expected.facts(predicate))
        assert joins.hint_for(cluster, 3) == "BROADCAST"
        plans.append(joins.hint_for(cluster, 100))
    assert plans == ["MERGE", "SHUFFLE_HASH"]


@pytest.mark.parametrize(
    ("size", "meant"),
    [
        ("512", 512 << 20),
        ("16g", 16 << 30),
        ("600MB", 600 << 20),
        ("1 potato", 1 << 30),
    ],
)
def test_sizes_are_read_as_spark_does(size: str, meant: int) -> None:
    assert joins.bytes_of(size) == meant


def test_more_memory_has_room_for_larger_tables() -> None:
    sizes = [joins.rows_in_tables(gigabytes << 30, 0.6) for gigabytes in (0, 1, 2, 16)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0
    assert 1_000_000 < sizes[1] < 2_000_000
    assert joins.room_for_tables(SparkEngine().cluster.session) > 0


def test_a_plan_without_room_is_run_again_with_sorted_sides() -> None:
    tried = []

    def run(sql: str) -> str:
        tried.append(sql)
        if "SHUFFLE_HASH" in sql:
            message = "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes"
            raise RuntimeError(message)
        return "done"

    assert with_room("SELECT /*+ SHUFFLE_HASH(r) */ 1", run) == "done"
    assert tried[1:] == ["SELECT /*+ MERGE(r) */ 1"]
    with pytest.raises(RuntimeError, match="other"):
        with_room("SHUFFLE_HASH", _fail_otherwise)


def _fail_otherwise(sql: str) -> None:
    raise RuntimeError("other", sql)


# ------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "message",
    [
        "Job aborted: java.lang.OutOfMemoryError: Java heap space",
        "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory",
        "Answer from Java side is empty",
    ],
)
def test_lack_of_memory_is_said_plainly(message: str) -> None:
    with pytest.raises(SparkStepError, match="memory") as caught, plain_failures():
        raise RuntimeError(message)
    assert "spark.driver.memory" in str(caught.value)
    assert caught.value.code == "EM805"


def test_java_that_ended_has_no_message() -> None:
    class GoneError(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    with pytest.raises(SparkStepError, match="Java side is empty"), plain_failures():
        raise GoneError


def test_other_failures_stay_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), plain_failures():
        _ = 1 / 0
    assert failures.DIED.search("division by zero") is None


# -------------------------------------------------------------------------- parts


@pytest.fixture(params=["dictionary on the driver", "dictionary on the cluster"])
def mixed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[evermat.Result]:
    """Rows of a predicate on the cluster, of which a hundred are many."""
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", 100)
    parts = _counted_parts(monkeypatch)
    monkeypatch.setattr(decoding, "TERMS_AT_ONCE", 100)
    kb, cluster = base(constants=3 if "cluster" in request.param else 10_000)
    kb.load({"mixed": MIXED})
    result = kb.facts("mixed")
    assert result.distant is not None
    assert bool(len(cluster.terms)) == ("cluster" in request.param)
    yield result
    assert max(parts) <= 100
    assert len(parts) >= 5
    checkpoints = require_place(cluster.session, is_local=True)
    assert not [*Path(checkpoints.removeprefix("file:")).rglob("*.parquet")]


def _counted_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows came at once, for each time that some came in parts."""
    sizes: list[int] = []

    def count(written: Any) -> Iterator[pa.Table]:
        for part in parts_of(written):
            sizes.append(part.num_rows)
            yield part

    for module in (blocks, decoding):
        monkeypatch.setattr(module, "parts_of", count)
    return sizes


@pytest.mark.parametrize("name", ["m.parquet", "m.arrow", "m.csv", "m.tsv.gz"])
@pytest.mark.parametrize("terms", [False, True])
def test_tables_are_written_in_parts_as_they_are_at_once(
    mixed: evermat.Result, tmp_path: Path, name: str, *, terms: bool
) -> None:
    mixed.write(tmp_path / name, terms=terms)
    expected = evermat.KnowledgeBase("")
    expected.load({"mixed": MIXED})
    expected.facts("mixed").write(tmp_path / "whole" / name, terms=terms)
    kb, other = evermat.KnowledgeBase(""), evermat.KnowledgeBase("")
    kb.load({"m": tmp_path / name})
    other.load({"m": tmp_path / "whole" / name})
    assert len(kb.facts("m")) == len(MIXED)
    assert set(kb.facts("m").constants()) == set(other.facts("m").constants())


def test_triples_are_written_in_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(decoding, "TERMS_AT_ONCE", 100)
    rows = [(evermat.IRI(f"urn:x{at}"), at) for at in range(500)]
    kb, _ = base(constants=3)
    kb.load({"urn:p": rows})
    for name in ("t.nt", "t.ttl"):
        kb.facts("urn:p").write(tmp_path / name)
        back = evermat.KnowledgeBase("")
        back.load(rdf=tmp_path / name)
        triples = back.query("[?x, <urn:p>, ?y]")
        assert set(triples.constants()) == set(kb.facts("urn:p").constants())


def test_many_rows_come_to_the_driver_in_parts(mixed: evermat.Result) -> None:
    rows = set(mixed)
    assert rows == set(MIXED)
    assert mixed.to_arrow().num_rows == len(MIXED)


def test_a_row_that_cannot_be_written_is_named_by_its_place_among_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(decoding, "TERMS_AT_ONCE", 10)
    kb, _ = base(constants=10_000)
    kb.load({"p": [(f"a\tb{at}" if at == 77 else f"t{at}",) for at in range(100)]})
    result = kb.facts("p")
    place = [row[0] for row in result.to_list()].index("a\tb77") + 1
    with pytest.raises(evermat.EvermatError, match=re.escape(f"row {place} has")):
        result.write(tmp_path / "p.facts")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ giving it back


def test_what_was_sent_is_not_kept_by_what_was_made_of_it() -> None:
    session: Any = SparkEngine().cluster.session
    frame: Any = session.range(9).localCheckpoint().cache()
    # A clone of the session would have copies of all views.
    cached = frame._jdf.queryExecution().withCachedData().cacheBuilder()  # noqa: SLF001
    assert cached.cachedPlan().session().equals(session._jsparkSession)  # noqa: SLF001
    frame.unpersist()


def test_java_forgets_what_only_a_view_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SparkEngine().cluster
    java: Any = cluster.session._jvm  # noqa: SLF001
    sent: list[Any] = []

    def watched(frame: Any) -> None:
        sent.append(java.java.lang.ref.WeakReference(frame._jdf))  # noqa: SLF001
        let_go(frame)

    monkeypatch.setattr("evermat.engines.spark.blocks.let_go", watched)
    gc.disable()
    try:
        view = cluster.register_table(pa.table({"tag": [0] * 9, "c0": list(range(9))}))
        assert cluster.collect(f"TABLE {view}").num_rows == 9
        cluster.waste.append((view, None))
        cluster.clean()
        for _ in range(10):
            java.System.gc()
        assert sent[0].get() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------------ real size

TWENTY_UNIVERSITIES = """
from evermat.bench import spark_task
spark_task.SETTINGS["spark.driver.memory"] = "640m"
task = {"part": "lubm", "by": "spread", "scale": 2, "updates": False}
spark_task.measure_spark(task, lambda *about, **told: print("facts:", told["facts"]))
"""


@pytest.mark.slow
def test_four_million_facts_are_published_from_little_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWENTY_UNIVERSITIES],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"facts: 4\d{6}\b", done.stdout)
