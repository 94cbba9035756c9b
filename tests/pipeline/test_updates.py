"""States: runs, updates, feeds, reports and what `status` tells of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from evermat import KnowledgeBase
from evermat.cli import OK, WRONG_INPUT, WRONG_USAGE
from evermat.cli import run as evermat
from evermat.errors import EvermatError
from evermat.pipeline import Config, Pipeline
from evermat.pipeline.errors import (
    OutputError,
    PipelineStateError,
    RejectedRowsError,
    SourceError,
)
from evermat.pipeline.report import Silent, Step, read_status
from evermat.pipeline.runs import PipelineBusyError
from pipelines import PROGRAM, configured, rows, run

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE = '[state]\npath = "state"\n'
OUTPUTS = """
[[output]]
predicate = "reach"
path = "out/reach"
[[output]]
name = "feed"
predicate = "reach"
mode = "changes"
path = "out/feed"
"""
SOURCE = '[[source]]\npredicate = "edge"\npath = "edge.csv"\n'
PARTS = (PROGRAM, STATE, SOURCE, OUTPUTS)


def edges(folder: Path, *pairs: str, name: str = "edge.csv") -> None:
    lines = ["x,y", *(f"{pair[0]},{pair[1]}" for pair in pairs)]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def feed(folder: Path) -> dict[str, list[str]]:
    """What each version of the feed says, in order."""
    found = {}
    for number, file in enumerate(sorted((folder / "out/feed").iterdir())):
        table = pq.read_table(file, partitioning=None)
        lines = [f"{r['sign']}{r['reach1']}{r['reach2']}" for r in _named(table)]
        found[str(number)] = sorted(lines)
    return found


def _named(table: object) -> list[dict[str, object]]:
    found = []
    for row in table.to_pylist():  # type: ignore[attr-defined]
        version, sign, first, second = row.values()
        assert isinstance(version, int)
        found.append({"sign": sign, "reach1": first, "reach2": second})
    return found


def test_an_update_takes_what_changed(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "bc")
    config = configured(tmp_path, *PARTS)
    first = run(config)
    edges(tmp_path, "ab", "cd")
    second = Pipeline(config).update()
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("c", "d")]
    assert feed(tmp_path) == {"0": ["+ab", "+ac", "+bc"], "1": ["+cd", "-ac", "-bc"]}
    assert second.report.changes["edge"] == {"added": 1, "removed": 1}
    assert first.report.version is not None
    assert second.report.version == first.report.version + 1
    old = KnowledgeBase.open(str(config.state), version=first.report.version)
    assert set(old.facts("reach")) == {("a", "b"), ("b", "c"), ("a", "c")}


def test_nothing_new_changes_nothing(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS)
    run(config)
    assert Pipeline(config).update().report.changes == {}
    assert rows(tmp_path / "out/reach") == [("a", "b")]


def test_sources_may_say_what_came_and_left(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "bc")
    changes = '[source.update]\ninsert = "new/*.csv"\ndelete = "gone.csv"\n'
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, changes, OUTPUTS)
    run(config)
    (tmp_path / "new").mkdir()
    edges(tmp_path, "cd", name="new/1.csv")
    edges(tmp_path, "ab", "zz", name="gone.csv")
    edges(tmp_path, name="edge.csv")
    finished = Pipeline(config).update()
    assert rows(tmp_path / "out/reach") == [("b", "c"), ("b", "d"), ("c", "d")]
    names = [(each["name"], each["change"]) for each in finished.report.sources]
    assert names == [("edge", "delete"), ("edge", "insert")]


def test_feeds_have_no_gaps(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS)
    run(config)
    # Versions that no run has published: it died, or somebody else made them.
    kb = KnowledgeBase.open(str(config.state))
    kb.insert("edge", [("b", "c")])
    kb.insert("other", [("b", 1)])
    kb.delete("edge", [("a", "b")])
    edges(tmp_path, "bc", "cd")
    Pipeline(config).update()
    news = list(feed(tmp_path).values())
    assert news == [["+ab"], ["+ac", "+bc"], ["-ab", "-ac"], ["+bd", "+cd"]]


def test_a_feed_begins_with_all_that_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges(tmp_path, "ab", "bc")
    config = configured(tmp_path, *PARTS)

    def no_room(*_: object) -> None:
        message = "no room for the feed"
        raise OSError(message)

    with monkeypatch.context() as patch:
        patch.setattr("evermat.pipeline.outputs.add_version", no_room)
        with pytest.raises(OutputError, match="no room"):
            run(config)
    edges(tmp_path, "ab", "bd")
    Pipeline(config).update()
    assert list(feed(tmp_path).values()) == [["+ab", "+ad", "+bd"]]


def test_empty_folders_change_nothing(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    told = '[source.update]\ninsert = "new"\ndelete = "gone"\n'
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, told, OUTPUTS)
    run(config)
    (tmp_path / "new").mkdir()
    edges(tmp_path / "new", "bc", name="1.csv")
    with pytest.raises(SourceError, match="gone"):
        Pipeline(config).update()
    (tmp_path / "gone").mkdir()
    Pipeline(config).update()
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("a", "c"), ("b", "c")]


def test_empty_folders_change_nothing_beside_facts_of_the_program(
    tmp_path: Path,
) -> None:
    edges(tmp_path, "ab")
    facts = '[program]\ntext = "edge(c, d) . reach(?x, ?y) :- edge(?x, ?y) ."\n'
    told = '[source.update]\ninsert = "new"\ndelete = "gone"\n'
    config = configured(tmp_path, facts, STATE, SOURCE, told, OUTPUTS)
    run(config)
    for name in ("new", "gone"):
        (tmp_path / name).mkdir()
    assert Pipeline(config).update().report.changes == {}
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ('predicate = "reached"', "did you mean `reach`?"),
        ('name = "x"\nquery = "reach(?x, ?y), eg(?y)"', "there is no predicate `eg`"),
        ('name = "x"\nquery = "reach(?x"', "in the arguments of `reach`"),
    ],
)
def test_outputs_that_cannot_be_meant_stop_a_run_in_time(
    tmp_path: Path, output: str, error: str
) -> None:
    edges(tmp_path, "ab")
    wrong = f'[[output]]\n{output}\npath = "out/x"\n'
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, wrong)
    with pytest.raises(EvermatError) as caught:
        run(config)
    assert error in str(caught.value)
    assert caught.value.__notes__ == [" = step: check the outputs"]
    assert not (tmp_path / "state").exists()


def test_reports_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS, '[report]\npath = "edge.csv/runs"\n')
    with pytest.raises(OutputError) as caught:
        run(config)
    assert caught.value.__notes__ == [" = step: write the report"]
    (tmp_path / "edge.csv").write_text("x,y\na,\n", encoding="utf-8")
    with pytest.raises(RejectedRowsError) as refused:
        run(config)
    step, report = refused.value.__notes__
    assert step == " = step: read source edge"
    assert report.startswith(" = report: cannot write ")
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS)
    run(config)
    (tmp_path / "runs/99990101T000000.000000-run.json").write_text('{"cut', "utf-8")
    assert read_status(config).predicates["reach"]["facts"] == 1


def test_feeds_tell_what_equality_changes(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "cd")
    config = configured(tmp_path, *PARTS)
    run(config)
    kb = KnowledgeBase.open(str(config.state))
    kb.insert("same_as", [("b", "c")])  # a version that no run has published
    edges(tmp_path, "ab")
    Pipeline(config).update()
    news = list(feed(tmp_path).values())
    assert news == [["+ab", "+cd"], ["+ac", "+ad", "+bd"], ["-ad", "-bd", "-cd"]]
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("a", "c")]


def test_rules_and_their_facts_are_updated_too(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    (tmp_path / "rules.dl").write_text(
        "link(?x, ?y) :- edge(?x, ?y) . edge(u, v) . old(?x) :- edge(?x, ?y) ."
    )
    program = '[program]\nrules = "rules.dl"\n'
    output = '[[output]]\npredicate = "link"\npath = "out/link"\n'
    config = configured(tmp_path, program, STATE, SOURCE, output)
    run(config)
    assert rows(tmp_path / "out/link") == [("a", "b"), ("u", "v")]
    (tmp_path / "rules.dl").write_text(
        "link(?x, ?y) :- edge(?x, ?y) . link(?y, ?x) :- edge(?x, ?y) ."
    )
    finished = Pipeline(config).update()
    assert rows(tmp_path / "out/link") == [("a", "b"), ("b", "a")]
    assert finished.report.work["removed_rules"] == 1
    assert finished.report.work["added_rules"] == 1


def test_a_second_run_makes_the_state_what_sources_say(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "bc")
    config = configured(tmp_path, *PARTS)
    run(config)
    other = configured(tmp_path, PROGRAM, STATE, OUTPUTS)
    run(other)
    assert rows(tmp_path / "out/reach") == []


def test_a_failed_run_leaves_everything_as_it_was(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "bc")
    config = configured(tmp_path, *PARTS)
    version = run(config).report.version
    (tmp_path / "edge.csv").write_text("x,y\na,\nb,c\n", encoding="utf-8")
    with pytest.raises(RejectedRowsError):
        Pipeline(config).update()
    assert KnowledgeBase.open(str(config.state)).version == version
    assert len(rows(tmp_path / "out/reach")) == 3
    assert len(feed(tmp_path)) == 1


def test_a_failed_first_run_leaves_no_state(tmp_path: Path) -> None:
    config = configured(tmp_path, *PARTS)
    with pytest.raises(OSError, match="there is no file"):
        run(config)
    assert not (tmp_path / "state").exists()


def test_an_update_needs_a_state(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    with pytest.raises(PipelineStateError, match=r"has no \[state\]"):
        Pipeline(configured(tmp_path, PROGRAM, SOURCE)).update()
    with pytest.raises(PipelineStateError, match="no state to update") as raised:
        Pipeline(configured(tmp_path, *PARTS)).update()
    assert raised.value.__notes__ == [" = step: look for the state"]


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    (tmp_path / "out").write_text("a file where a folder should be")
    with pytest.raises(OutputError, match="cannot write") as raised:
        run(configured(tmp_path, PROGRAM, SOURCE, OUTPUTS))
    assert raised.value.__notes__ == [" = step: write output reach"]


@pytest.mark.parametrize("place", [".", "data", "data/edge.csv"])
def test_outputs_remove_nothing_of_others(tmp_path: Path, place: str) -> None:
    (tmp_path / "data").mkdir()
    edges(tmp_path / "data", "ab")
    output = f'[[output]]\npredicate = "reach"\npath = "{place}"\n'
    source = '[[source]]\npredicate = "edge"\npath = "data/edge.csv"\n'
    config = configured(tmp_path, PROGRAM, source, output)
    with pytest.raises(OutputError, match=r"other files, such as|file of that name"):
        run(config)
    assert (tmp_path / "data/edge.csv").read_text() == "x,y\na,b\n"
    assert config.file.exists()


def test_outputs_are_called_by_their_names(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    outputs = (
        '[[output]]\npredicate = "reach"\npath = "out/reach"\n'
        '[[output]]\nname = "feed"\npredicate = "reach"\nmode = "changes"\n'
        'path = "out/feed"\n'
        '[[output]]\nname = "all"\npredicates = ["edge", "reach"]\n'
        'path = "out/all/{predicate}"\n'
    )
    report = run(configured(tmp_path, PROGRAM, SOURCE, outputs)).report
    titles = [output["title"] for output in report.outputs]
    assert titles == ["reach", "feed", "all: edge", "all: reach"]


def test_outputs_replace_what_they_wrote(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, PROGRAM, SOURCE, OUTPUTS)
    run(config)
    folder = tmp_path / "out/reach"
    (folder / "part-00001-000.parquet").write_bytes(b"an old part")
    (folder / "_SUCCESS").touch()
    run(config)
    assert [file.name for file in folder.iterdir()] == ["part-00000.parquet"]
    assert not list(tmp_path.glob("out/.*"))


@pytest.mark.parametrize("form", ["csv", "tsv", "nt", "parquet"])
def test_outputs_in_all_forms(tmp_path: Path, form: str) -> None:
    (tmp_path / "edge.csv").write_text("x,y\n1,2\n2,3\n", encoding="utf-8")
    iris = (
        'columns = { x = "integer", y = "integer" }\n'
        'arguments = [{ iri = "http://e/{x}" }, { iri = "http://e/{y}" }]\n'
    )
    more = (
        f'[[output]]\nname = "other"\npredicate = "reach"\nformat = "{form}"\n'
        'path = "out/other"\n[[output]]\nname = "news"\npredicate = "reach"\n'
        f'mode = "changes"\nformat = "{form}"\npath = "out/news"\n'
    )
    run(configured(tmp_path, PROGRAM, SOURCE, iris, OUTPUTS, more))
    (file,) = (tmp_path / "out/other").iterdir()
    assert file.name == f"part-00000.{form}"
    names = sorted(each.name for each in (tmp_path / "out/news").iterdir())
    start = "version-000000000001"
    added = [f"{start}-added.nt", f"{start}-removed.nt"]
    assert names == (added if form == "nt" else [f"{start}.{form}"])
    if form == "nt":
        assert len(file.read_text(encoding="utf-8").splitlines()) == 3
    elif form != "parquet":
        mark = "," if form == "csv" else "\t"
        assert f"http://e/1{mark}http://e/3\n" in file.read_text(encoding="utf-8")


def test_streams_of_events_are_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges(tmp_path, "ab", "bc")
    events = '[stream]\nformat = "json"\npath = "events"\n'
    engine = '[engine]\nname = "embedded"\n'
    config = configured(tmp_path, engine, *PARTS, events)
    command = ["pipeline", "stream", str(config.file)]
    assert evermat(command) == WRONG_INPUT
    assert "there is no state to stream" in capsys.readouterr().err
    run(config)
    (tmp_path / "events").mkdir()
    (tmp_path / "events/1.json").write_text(
        '{"sign": "-", "predicate": "edge", "values": ["a", "b"]}\nnonsense\n'
        '{"sign": "+", "predicate": "edge", "values": ["c", "d"]}\n'
    )
    assert evermat(command) == OK
    shown = capsys.readouterr()
    assert "1 batch, 3 events, 1 bad, +3 −3 facts" in shown.err
    assert "reach\t2\t2\t3" in shown.out
    assert rows(tmp_path / "out/reach") == [("b", "c"), ("b", "d"), ("c", "d")]
    assert evermat(command) == OK
    assert "0 batches, 0 events" in capsys.readouterr().err
    assert evermat(["pipeline", "status", str(config.file)]) == OK
    assert "-stream\tok\t" in capsys.readouterr().out


class Stopping(Silent):
    """Stops the program when it hears of a batch."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def tell(self, news: str) -> None:
        assert news.startswith("1 batch,")
        os.kill(os.getpid(), self._number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_that_is_stopped_ends_after_a_batch(
    tmp_path: Path, number: signal.Signals
) -> None:
    edges(tmp_path, "ab")
    events = '[stream]\nformat = "csv"\npath = "events"\ntrigger = 0.01\n'
    config = configured(tmp_path, *PARTS, events)
    run(config)
    (tmp_path / "events").mkdir()
    (tmp_path / "events/1.csv").write_text("+,edge,b,c\n", encoding="utf-8")
    before = signal.getsignal(number)
    finished = Pipeline(config, watcher=Stopping(number)).stream()
    assert finished.report.status == "ok"
    assert finished.report.changes["reach"] == {"added": 2, "removed": 0}
    assert signal.getsignal(number) is before


class Impatient(Silent):
    """Interrupts twice when it hears of a batch."""

    def tell(self, news: str) -> None:
        del news
        # To this thread: any thread may take signals to the process, and join them.
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """SIGINT as a terminal delivers it; processes in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_a_second_interrupt_ends_a_stream_at_once(tmp_path: Path) -> None:
    events = '[stream]\nformat = "csv"\npath = "events"\ntrigger = 0.01\n'
    config = configured(tmp_path, PROGRAM, STATE, events)
    run(config)
    (tmp_path / "events").mkdir()
    (tmp_path / "events/1.csv").write_text("+,edge,b,c\n", encoding="utf-8")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Pipeline(config, watcher=Impatient()).stream()
    assert signal.getsignal(signal.SIGINT) is before
    (tmp_path / "events/2.csv").write_text("+,edge,c,d\n", encoding="utf-8")
    stream = replace(config.stream, trigger="once") if config.stream else None
    report = Pipeline(replace(config, stream=stream)).stream().report
    assert report.changes["edge"] == {"added": 1, "removed": 0}


class InTheWay(Silent):
    """Runs the pipeline once more before each step, which has to be refused."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.refused: list[str] = []

    def begin(self, step: Step) -> None:
        with pytest.raises(PipelineBusyError, match="another run of"):
            run(self._config)
        self.refused.append(step.name)


def test_a_pipeline_is_run_once_at_a_time(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "bc")
    config = configured(tmp_path, *PARTS)
    watcher = InTheWay(config)
    Pipeline(config, watcher=watcher).run()
    assert {"read rules", "materialise", "write output reach"} <= set(watcher.refused)
    assert len(list(Path(config.reports).glob("*.json"))) == 1
    assert run(config).report.status == "ok"
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("a", "c"), ("b", "c")]


# ---------------------------------------------------------------- commands and reports


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    edges(tmp_path, "ab", "bc")
    configured(tmp_path, "[engine]", 'name = "embedded"', *PARTS)
    return tmp_path


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(folder / "pipeline.toml")
    assert evermat(["pipeline", "status", config]) == OK
    assert "no runs so far" in capsys.readouterr().out
    assert evermat(["pipeline", "run", config]) == OK
    shown = capsys.readouterr()
    assert "reach\t3\t0\t3\n" in shown.out
    assert "done\tread source edge\t" in shown.err
    edges(folder, "ab")
    assert evermat(["pipeline", "update", config, "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert document["changes"]["reach"] == {"added": 0, "removed": 2}
    assert evermat(["pipeline", "status", config]) == OK
    shown = capsys.readouterr()
    assert "reach\t1\t0\n" in shown.out
    assert len([line for line in shown.out.splitlines() if "\tok\t" in line]) == 2
    assert evermat(["pipeline", "status", config, "--json", "--limit", "1"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == document["runs"][0]["version"]
    assert len(document["runs"]) == 1


def test_failures_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(folder / "pipeline.toml")
    (folder / "edge.csv").unlink()
    assert evermat(["pipeline", "run", config]) == WRONG_INPUT
    shown = capsys.readouterr()
    assert "failed\tread source edge\t" in shown.err
    assert "SourceError [EM802]: there is no file" in shown.err
    assert " = step: read source edge" in shown.err
    assert evermat(["pipeline", "status", config]) == OK
    assert "the last run failed:\nSourceError" in capsys.readouterr().out
    assert evermat(["pipeline", "run", str(folder / "other.toml")]) == WRONG_INPUT
    assert evermat(["pipeline", "jog", config]) == WRONG_USAGE
    assert evermat(["pipeline", "run", config, "--engine", "steam"]) == WRONG_USAGE


def test_reports_are_complete_pages(folder: Path) -> None:
    (folder / "edge.csv").write_text("x,y\na,b\nb,<i>\n,c\n", encoding="utf-8")
    config = configured(folder, *PARTS)
    (source,) = config.sources
    lenient = replace(source, limit=replace(source.limit, rows=1))
    finished = run(replace(config, sources=(lenient,)))
    page = Path(finished.page).read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    for text in ("read source edge", "no value", "materialise", "reach"):
        assert text in page
    assert "<i>" not in page
    assert "src=" not in page
    assert "href=" not in page
    document = json.loads(Path(finished.document).read_text(encoding="utf-8"))
    assert document["sources"][0]["rejected"] == 1
    assert document["steps"][0]["name"] == "read rules"


@pytest.mark.parametrize("command", [[], ["run"], ["update"], ["stream"], ["status"]])
def test_help_teaches(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert evermat(["pipeline", *command, "--help"]) == OK
    assert f"evermat pipeline {command[0] if command else 'run'} " in (
        capsys.readouterr().out
    )


def test_an_interrupted_run_says_so_in_its_report(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pipeline(config, progress=interrupt).run()
    (report,) = (tmp_path / "runs").glob("*.json")
    assert json.loads(report.read_text())["error"] == "interrupted"


def test_a_change_feed_belongs_to_its_state(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS)
    run(config)
    told = feed(tmp_path)
    shutil.rmtree(str(config.state))
    edges(tmp_path, "cd")
    with pytest.raises(OutputError, match="the state has not"):
        run(config)
    assert not Path(str(config.state)).exists()
    assert feed(tmp_path) == told
    shutil.rmtree(tmp_path / "out/feed")
    run(config)
    assert feed(tmp_path) == {"0": ["+cd"]}


def test_pipelines_can_be_read_in_a_console(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, *PARTS)
    pipeline = Pipeline(config)
    assert repr(pipeline) == "<Pipeline pipeline on embedded: 1 source, 2 outputs>"
    finished = pipeline.run()
    told = f"<Finished run of pipeline: version 2, see {finished.page}>"
    assert repr(finished) == told
    notes = {step["name"]: step["note"] for step in finished.report.steps}
    assert notes["read source edge"] == notes["write output reach"] == "1 row"
