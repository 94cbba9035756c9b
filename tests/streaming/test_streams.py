"""Streams of events: maintained, exactly once, whatever happens in between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import evermat
import streams
from evermat import lake
from evermat.errors import EvermatError
from evermat.pipeline.errors import OutputError
from evermat.pipeline.stream import Batches, StreamError, StreamSource, stream

if TYPE_CHECKING:
    from evermat.pipeline.stream import StreamReport
    from evermat.pipeline.stream_events import GoodEvent

KILLED = -signal.SIGKILL


@pytest.fixture(
    params=["reference", "embedded", pytest.param("spark", marks=pytest.mark.spark)]
)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def rows(place: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = DeltaTable(place).to_pyarrow_table().to_pylist()
    return found


def check(folder: Path, files: int) -> None:
    """The state is that of all events, and what was written was written once."""
    kb = streams.opened(folder, "embedded")
    edges = streams.expected_edges(folder / "events")
    assert set(kb.facts("edge")) == edges
    scratch = evermat.KnowledgeBase(streams.RULES, engine="reference")
    scratch.insert("edge", list(edges))
    assert set(kb.counters("reach")) == set(scratch.counters("reach"))
    assert kb.last_batch(streams.APPLICATION) == files - 1
    # The feed adds up to the facts; nothing comes twice or leaves twice.
    total: Counter[object] = Counter()
    for row in sorted(rows(folder / "feed"), key=lambda row: str(row["version"])):
        fact = (row["predicate"], *row["values"])  # type: ignore[misc]
        total[fact] += 1 if row["sign"] == "+" else -1
    assert set(total.values()) <= {0, 1}
    assert total.total() == kb.count("edge") + kb.count("reach")
    versions = [
        (row["version"], row["sign"], str(row)) for row in rows(folder / "feed")
    ]
    assert len(set(versions)) == len(versions)
    dead = rows(folder / "dead")
    assert sorted(row["batch"] for row in dead) == list(range(files))  # type: ignore[type-var]
    assert all("neither `+` nor `-`" in str(row["reason"]) for row in dead)


def test_events_are_maintained_batch_by_batch(tmp_path: Path, engine: str) -> None:
    streams.write_events(tmp_path / "events", 4)
    report = streams.follow(tmp_path, engine)
    assert (report.batches, report.events, report.bad) == (4, 28, 4)
    check(tmp_path, 4)
    streams.write_events(tmp_path / "events", 2, seed=2, first=4)
    report = streams.follow(tmp_path, engine)
    assert (report.batches, report.skipped) == (2, 0 if engine == "spark" else 4)
    check(tmp_path, 6)
    assert streams.follow(tmp_path, engine).batches == 0


def test_batches_are_as_large_as_the_source_allows(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 5)
    assert streams.follow(tmp_path, "embedded", files=2).batches == 3


def test_a_stream_goes_on_after_any_crash(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 5)
    streams.opened(tmp_path, "reference")
    script = Path(streams.__file__)
    killed = 0
    for line in (100, 700, 1100, 1600, 2100):
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path), "reference", str(line)],
            capture_output=True,
            check=False,
        )
        killed += done.returncode == KILLED
    assert killed >= 3
    streams.follow(tmp_path, "reference")
    check(tmp_path, 5)


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_on_spark_goes_on_after_a_crash(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 3)
    streams.opened(tmp_path, "embedded")
    script = Path(streams.__file__)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "spark", "1300"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == KILLED
    streams.follow(tmp_path, "spark")
    check(tmp_path, 3)


def test_a_feed_that_lags_behind_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams.write_events(tmp_path / "events", 3)

    def no_room(*_: object) -> None:
        message = "no room for the feed"
        raise OSError(message)

    with monkeypatch.context() as patch:
        patch.setattr("evermat.pipeline.stream.Feed.publish", no_room)
        with pytest.raises(OSError, match="no room"):
            streams.follow(tmp_path, "embedded")
    streams.write_events(tmp_path / "events", 0)
    streams.follow(tmp_path, "embedded")
    check(tmp_path, 3)


def test_a_failing_update_stops_the_stream_and_changes_nothing(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    (events / "1.csv").write_text("+,number,5\n")
    (events / "2.csv").write_text("+,number,0\n")
    kb = evermat.KnowledgeBase(
        "half(?x, ?y) :- number(?x), ?y = 10 / ?x .", state=tmp_path / "state"
    )

    def run() -> StreamReport:
        return stream(
            kb,
            StreamSource("csv", str(events), {"maxFilesPerTrigger": "1"}),
            app_id="numbers",
            checkpoint=tmp_path / "checkpoint",
        )

    with pytest.raises(EvermatError, match="by zero"):
        run()
    assert set(kb.facts("half")) == {(5, 2)}
    assert kb.last_batch("numbers") == 0
    kb.update(remove_rules="half(?x, ?y) :- number(?x), ?y = 10 / ?x .")
    assert run().batches == 1
    assert set(kb.facts("number")) == {(5,), (0,)}


HALVES = """
    @declare number(any) . @declare named(string) .
    half(?x, ?y) :- number(?x), not known(?x), ?y = 10 / ?x .
"""


def numbers(folder: Path, engine: str) -> StreamReport:
    return stream(
        evermat.KnowledgeBase(HALVES, engine=engine, state=folder / "state"),
        StreamSource("csv", str(folder / "events"), {"maxFilesPerTrigger": "1"}),
        app_id="numbers",
        checkpoint=folder / "checkpoint",
        feed=folder / "feed",
        dead_letters=folder / "dead",
    )


def test_events_that_make_an_update_fail_are_dead_letters(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "events"
    events.mkdir()
    (events / "1.csv").write_text("+,number,5\n+,known,0\n+,number,0\n")
    lines = ["+,number,1", "-,known,0", "?,number,9", "+,named,7", "+,number,0"]
    lines += ["+,number,2", "+,number,x", "+,number,x", "-,number,5", "+,known,x"]
    (events / "2.csv").write_text("\n".join(lines) + "\n")
    (events / "3.csv").write_text("+,number,10\n")
    for number in (1, 2, 3):
        os.utime(events / f"{number}.csv", (number, number))
    update, calls = Batches.update, []

    def dies_once(self: Batches, number: int, some: list[GoodEvent]) -> object:
        calls.append(number)
        if calls.count(1) == 2:
            calls.append(1)
            message = "somebody pulled the plug"
            raise OSError(message)
        return update(self, number, some)

    monkeypatch.setattr(Batches, "update", dies_once)
    with pytest.raises(OSError, match="plug"):
        numbers(tmp_path, engine)
    report = numbers(tmp_path, engine)
    assert (report.batches, report.bad) == (2, 3)
    kb = evermat.KnowledgeBase.open(tmp_path / "state")
    assert set(kb.facts("number")) == {(0,), (1,), (2,), ("x",), (10,)}
    assert set(kb.facts("half")) == {(1, 10), (2, 5), (10, 1)}
    assert kb.last_batch("numbers") == 2
    dead = {row["position"]: row for row in rows(tmp_path / "dead")}
    assert set(dead) == {1, 2, 3}
    assert all(row["batch"] == 1 for row in dead.values())
    assert dead[1]["event"] == "-,known,0"
    assert "by zero" in str(dead[1]["reason"])
    assert "not of type `string`" in str(dead[3]["reason"])
    assert len(rows(tmp_path / "dead")) == 3


def test_a_stream_runs_until_it_is_stopped(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 1)
    kb = streams.opened(tmp_path, "embedded")
    stop, seen = Event(), Event()
    reports = []

    def run() -> None:
        source = StreamSource("json", str(tmp_path / "events"))
        reports.append(
            stream(
                kb,
                source,
                app_id="a",
                checkpoint=tmp_path / "checkpoint",
                trigger=0.05,
                stop=stop,
                on_batch=lambda _: seen.set(),
            )
        )

    thread = Thread(target=run)
    thread.start()
    assert seen.wait(60)
    seen.clear()
    streams.write_events(tmp_path / "events", 1, seed=3, first=1)
    assert seen.wait(60)
    stop.set()
    thread.join(60)
    assert reports[0].batches == 2


def test_a_stream_is_stopped_though_more_batches_wait(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 3)
    kb = streams.opened(tmp_path, "embedded")
    stop = Event()
    one_by_one = {"maxFilesPerTrigger": "1"}
    report = stream(
        kb,
        StreamSource("json", str(tmp_path / "events"), one_by_one),
        app_id="a",
        checkpoint=tmp_path / "checkpoint",
        trigger=0.01,
        stop=stop,
        on_batch=lambda _: stop.set(),
    )
    assert report.batches == 1


def test_a_feed_can_be_followed_by_another(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 3)
    streams.follow(tmp_path, "embedded")
    state = tmp_path / "state"
    facts: set[object] = set()
    for change in lake.changes(state, since=0):
        fact = (change.predicate, change.values)
        (facts.add if change.sign == "+" else facts.remove)(fact)
    assert (
        len(facts)
        == lake.read(state, "edge").num_rows + lake.read(state, "reach").num_rows
    )


# ------------------------------------------------------------------------ bad input


def test_what_a_stream_needs(tmp_path: Path) -> None:
    source = StreamSource("json", str(tmp_path / "events"))
    with pytest.raises(StreamError, match="needs a state"):
        stream(evermat.KnowledgeBase(), source, app_id="a", checkpoint=tmp_path / "c")
    kb = streams.opened(tmp_path, "embedded")

    def run(source: StreamSource, **more: object) -> None:
        stream(kb, source, app_id="a", checkpoint=tmp_path / "c", **more)  # type: ignore[arg-type]

    with pytest.raises(StreamError, match="no folder of events"):
        run(source)
    with pytest.raises(StreamError, match="needs Spark"):
        run(StreamSource("kafka"))
    (tmp_path / "events").mkdir()
    with pytest.raises(StreamError, match="no trigger"):
        run(source, trigger="often")
    with pytest.raises(StreamError, match="not a number of files"):
        run(StreamSource("json", source.path, {"maxFilesPerTrigger": "few"}))
    (tmp_path / "events" / "1.json").write_bytes(b"\xff\xfe{}\n\n")
    run(source, dead_letters=tmp_path / "dead")
    assert "not UTF-8" in str(rows(tmp_path / "dead")[0]["reason"])


def test_a_checkpoint_belongs_to_its_state(tmp_path: Path, engine: str) -> None:
    streams.write_events(tmp_path / "events", 3)
    streams.follow(tmp_path, engine)
    version = streams.opened(tmp_path, "embedded").version
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(StreamError, match="checkpoint"):
        streams.follow(tmp_path, engine)
    assert streams.opened(tmp_path, "embedded").version == version


def test_a_feed_and_dead_letters_belong_to_their_state(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 3)
    streams.follow(tmp_path, "embedded")
    told = rows(tmp_path / "feed")
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(OutputError, match=r"change feed at .* the state has not"):
        streams.follow(tmp_path, "embedded")
    assert streams.opened(tmp_path, "embedded").version == 1
    assert rows(tmp_path / "feed") == told
    shutil.rmtree(tmp_path / "feed")
    letters = rows(tmp_path / "dead")
    with pytest.raises(OutputError, match="are of batch 2, which the state has not"):
        streams.follow(tmp_path, "embedded")
    shutil.rmtree(tmp_path / "dead")
    assert streams.follow(tmp_path, "embedded").batches == 3
    assert rows(tmp_path / "dead") == letters


@pytest.mark.spark
def test_events_in_columns_and_formats_that_there_are_not(tmp_path: Path) -> None:
    streams.write_events(tmp_path / "events", 2)
    streams.follow(tmp_path, "embedded")
    copy = evermat.KnowledgeBase(streams.RULES, engine="spark", state=tmp_path / "copy")
    given = lake.change_table(tmp_path / "state", since=0)
    given = given.filter([p == "edge" for p in given["predicate"].to_pylist()])
    (tmp_path / "parquet").mkdir()
    import pyarrow.parquet as pq  # noqa: PLC0415  only here

    pq.write_table(given, tmp_path / "parquet" / "1.parquet")
    source = StreamSource("parquet", str(tmp_path / "parquet"))
    stream(copy, source, app_id="copy", checkpoint=tmp_path / "c1")
    assert set(copy.facts("edge")) == streams.expected_edges(tmp_path / "events")
    with pytest.raises(StreamError, match="cannot read events as `carrier-pigeons`"):
        stream(
            copy,
            StreamSource("carrier-pigeons"),
            app_id="other",
            checkpoint=tmp_path / "c2",
        )
    with pytest.raises(StreamError, match="events are in `value`"):
        stream(
            copy,
            StreamSource("parquet", source.path, schema="something STRING"),
            app_id="odd",
            checkpoint=tmp_path / "c3",
        )
