"""`pipeline check`, dry runs, and expectations."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evermat import KnowledgeBase
from evermat.cli import OK, WRONG_INPUT
from evermat.cli import run as evermat
from evermat.errors import EvermatError
from evermat.pipeline import Pipeline
from evermat.pipeline.errors import ConfigError, RejectedRowsError
from evermat.pipeline.expectations import ExpectationError
from pipelines import OUTPUT, PROGRAM, configured, rows, run

STATE = '[state]\npath = "state"\n'
EMBEDDED = ["--engine", "embedded"]
SOURCE = '[[source]]\npredicate = "edge"\npath = "edge.csv"\n'


def edges(folder: Path, *pairs: str) -> None:
    lines = ["x,y", *(",".join(pair) for pair in pairs)]
    (folder / "edge.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def expect(text: str) -> str:
    return f"[[expect]]\n{text}\n"


# ------------------------------------------------------------------------------ checks


def test_a_check_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT)
    before = sorted(tmp_path.iterdir())
    assert evermat(["pipeline", "check", str(config.file)]) == OK
    told = capsys.readouterr()
    assert "all is there" in told.out
    assert "look at source edge" in told.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_check_tells_of_everything(tmp_path: Path) -> None:
    columns = "[source.columns]\nfrom = 'string'\nto = 'string'\n"
    missing = '[[source]]\npredicate = "p"\npath = "p.parquet"\n'
    wrong = '[[output]]\npredicate = "reached"\npath = "o"\n'
    edges(tmp_path, "ab")
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, columns, missing, wrong)
    with pytest.raises(EvermatError, match="there is no column `from`") as caught:
        Pipeline(config).check()
    told = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "there is no file" in told
    assert "did you mean `reach`?" in told


# ---------------------------------------------------------------------------- dry runs


def test_a_dry_run_tells_what_would_change(tmp_path: Path) -> None:
    edges(tmp_path, "ab", "bc")
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT)
    report = Pipeline(config).run(is_dry=True).report
    assert report.changes["reach"] == {"added": 3, "removed": 0}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "edge.csv",
        "pipeline.toml",
    ]
    run(config)
    edges(tmp_path, "ab", "cd")
    version = KnowledgeBase.open(str(config.state)).version
    report = Pipeline(config).update(is_dry=True).report
    assert report.changes["edge"] == {"added": 1, "removed": 1}
    kb = KnowledgeBase.open(str(config.state))
    assert kb.version == version
    assert set(kb.facts("edge")) == {("a", "b"), ("b", "c")}
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("a", "c"), ("b", "c")]
    assert len(list(Path(config.reports).iterdir())) == 2
    Pipeline(config).update()
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("c", "d")]


def test_a_dry_run_with_new_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges(tmp_path, "ab", "bc")
    run(configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT))
    rules = '[program]\ntext = "reach(?y, ?x) :- edge(?x, ?y) ."\n'
    config = configured(tmp_path, rules, STATE, SOURCE, OUTPUT)
    command = ["pipeline", "update", str(config.file), "--dry-run", "--json"]
    command += EMBEDDED
    assert evermat(command) == OK
    document = json.loads(capsys.readouterr().out)
    assert document["changes"]["reach"] == {"added": 2, "removed": 3}
    assert len(KnowledgeBase.open(str(config.state)).rules) == 2


def test_a_dry_run_that_fails_has_no_report(tmp_path: Path) -> None:
    edges(tmp_path, ("a", ""))  # type: ignore[arg-type]
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT)
    with pytest.raises(RejectedRowsError):
        Pipeline(config).run(is_dry=True)
    assert not Path(config.reports).exists()


# ------------------------------------------------------------------------ expectations


def test_nothing_is_published_that_is_not_as_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loops = expect('name = "no loops"\nnone = "reach(?x, ?x)"')
    loops = loops.replace("no loops", "no-loops")
    edges(tmp_path, "ab")
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT, loops)
    assert run(config).report.expectations[0]["is_met"]
    edges(tmp_path, "ab", "ba")
    with pytest.raises(ExpectationError, match=r"`no-loops` is not met.* 2 answers"):
        Pipeline(config).update()
    assert rows(tmp_path / "out/reach") == [("a", "b")]
    command = ["pipeline", "update", str(config.file), *EMBEDDED]
    assert evermat(command) == WRONG_INPUT
    told = capsys.readouterr().err
    assert "such as" in told
    assert "('a',)" in told
    edges(tmp_path, "ab", "bc")
    Pipeline(config).update()
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("a", "c"), ("b", "c")]


def test_warnings_and_quarantine_publish(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges(tmp_path, "aa", "ab")
    config = configured(
        tmp_path,
        PROGRAM,
        SOURCE,
        OUTPUT,
        expect('none = "reach(?x, ?x)"\naction = "quarantine"'),
        expect('some = "reach(?x, \'z\')"\naction = "warn"'),
        expect('some = "reach(?x, ?y)"'),
    )
    assert evermat(["pipeline", "run", str(config.file), *EMBEDDED]) == OK
    told = capsys.readouterr().out
    assert "not met: `reach(?x, ?x)` has 1 answer, in" in told
    assert "not met: `reach(?x, 'z')` has no answer" in told
    assert len(rows(tmp_path / "out/reach")) == 2
    (place,) = (tmp_path / "quarantine").glob("run=*/*.parquet")
    assert pq.read_table(place, partitioning=None).to_pylist() == [{"x": "a"}]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has to name a query"),
        ('none = "p(?x)"\nsome = "p(?x)"', "in one way"),
        ('none = "p(?x)"\naction = "stop"', "`action` of expect 1 cannot be `stop`"),
        ('none = "p(?x)"\nname = "a b"', "cannot be the name"),
    ],
)
def test_expectations_are_checked(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        configured(tmp_path, PROGRAM, SOURCE, expect(text))


def test_expectations_speak_of_known_predicates(tmp_path: Path) -> None:
    edges(tmp_path, "ab")
    config = configured(tmp_path, PROGRAM, SOURCE, expect('none = "reached(?x)"'))
    with pytest.raises(EvermatError, match="did you mean `reach`"):
        run(config)
