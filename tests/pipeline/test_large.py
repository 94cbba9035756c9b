"""Pipelines whose rows are too many for the driver: it sees none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from collected import count_collected
from evermat.pipeline import Pipeline
from evermat.pipeline.config import EngineSettings
from evermat.pipeline.spark_session import spark_session
from pipelines import configured, rows, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
SMALL = 40
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
SHORT = """
[program]
text = "link(?s, ?o) :- [?s, ?p, ?o] ."
[[source]]
name = "lines"
path = "lines.nt"
[[output]]
predicate = "link"
path = "out/link"
[[output]]
name = "triples"
predicates = ["triple"]
format = "nt"
path = "out/triples"
"""
LARGE = """
[program]
text = '''
    two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .
    link(?s, ?o) :- [?s, ?p, ?o] .
'''
[state]
path = "state"
[[source]]
name = "edges"
predicate = "edge"
path = "edge.csv"
[[source]]
name = "lines"
path = "lines.nt"
[[output]]
predicates = ["two", "link"]
path = "out/{predicate}"
[[output]]
name = "texts"
predicate = "two"
format = "csv"
path = "out/texts"
[[output]]
name = "triples"
predicates = ["triple"]
format = "nt"
path = "out/triples"
[[output]]
name = "feed"
predicate = "two"
mode = "changes"
path = "out/feed"
[[output]]
name = "asked"
query = "edge(?x, ?y), not link(?x, ?y)"
path = "out/asked"
"""


@pytest.fixture(scope="module")
def _session() -> Iterator[None]:
    with spark_session(EngineSettings(master="local[2]"), "tests"):
        yield


def data(folder: Path, first: int, last: int) -> None:
    # Few numbers among texts: how a value is written depends on all of its column.
    lines = [
        f"n{at},{at + 1 if at % 50 == 7 else f'n{at + 1}'}" for at in range(first, last)
    ]
    (folder / "edge.csv").write_text("\n".join(["x,y", *lines]) + "\n", "utf-8")
    triples = [
        f'<http://e/{at}> <http://e/p> "{at}"^^<{INTEGER}> .'
        for at in range(first, last)
    ]
    (folder / "lines.nt").write_text("\n".join(triples) + "\n", "utf-8")


def texts(folder: Path) -> list[str]:
    """The lines of all files of a folder, each once."""
    return sorted(
        {line for file in folder.iterdir() for line in file.read_text().splitlines()}
    )


def results(folder: Path) -> dict[str, object]:
    found = sorted((folder / "out").iterdir())
    return {
        each.name: (texts if each.name in {"texts", "triples"} else rows)(each)
        for each in found
    }


@pytest.mark.usefixtures("_session")
@pytest.mark.parametrize("parts", [SHORT, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_rows_go_from_sources_to_outputs_without_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    for name in ("SMALL", "CONSTANTS"):
        monkeypatch.setenv(f"EVERMAT_SPARK_{name}", str(SMALL))
    monkeypatch.setattr("evermat.pipeline.spark_io.ROWS_IN_A_FILE", 100)
    collected = count_collected(monkeypatch)
    found = []
    for engine in ("spark", "embedded"):
        folder = tmp_path / engine
        folder.mkdir()
        config = configured(folder, parts, engine=engine)
        data(folder, 0, 300)
        finished = run(config)
        if config.state is not None:
            data(folder, 100, 420)
            finished = Pipeline(config).update()
        found.append((results(folder), finished.report.changes))
    assert found[0] == found[1]
    assert max(collected) <= SMALL


STREAM = """
[program]
text = "half(?x, ?y) :- number(?x), ?y = 10 / ?x ."
[state]
path = "state"
[[source]]
predicate = "number"
path = "number.csv"
[source.columns]
n = "integer"
[[output]]
predicate = "half"
path = "out/half"
[stream]
format = "csv"
path = "events"
dead_letters = "dead"
feed = "feed"
"""


@pytest.mark.slow
@pytest.mark.usefixtures("_session")
def test_a_pipeline_follows_a_stream(tmp_path: Path) -> None:
    (tmp_path / "number.csv").write_text("n\n1\n5\n", "utf-8")
    (tmp_path / "events").mkdir()
    (tmp_path / "events/1.csv").write_text("+,number,2\n+,number,0\n-,number,5\n")
    config = configured(tmp_path, STREAM, engine="spark")
    run(config)
    Pipeline(config).stream()
    assert rows(tmp_path / "out/half") == [(1, 10), (2, 5)]
    dead = DeltaTable(tmp_path / "dead").to_pyarrow_table().to_pylist()
    assert [each["event"] for each in dead] == ["+,number,0"]
    assert "by zero" in dead[0]["reason"]
