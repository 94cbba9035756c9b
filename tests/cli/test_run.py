"""`evermat run` and `evermat query`, as people and pipes see them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evermat.cli import BUDGET_EXCEEDED, OK, WRONG_INPUT, WRONG_USAGE, run

if TYPE_CHECKING:
    from pathlib import Path

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RULES = """
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules.dl").write_text(RULES)
    facts = tmp_path / "facts"
    facts.mkdir()
    (facts / "edge.csv").write_text("a,b\nb,c\n")
    (facts / "notes.txt").write_text("not facts")
    monkeypatch.chdir(tmp_path)
    return tmp_path


Shown = pytest.CaptureFixture[str]
ON_REFERENCE = ["--engine", "reference"]


@pytest.mark.usefixtures("folder")
def test_plain_lines_in_a_pipe(capsys: Shown) -> None:
    assert run(["run", "rules.dl", "--facts", "facts", *ON_REFERENCE]) == OK
    shown = capsys.readouterr()
    assert "edge\t2\t2\n" in shown.out
    assert "reach\t3\t0\n" in shown.out
    assert shown.out.startswith("read 2 facts in ")
    assert shown.err == ""


@pytest.mark.parametrize(
    "places", [["facts/edge.csv"], ["edge=other.csv"], ["facts", "edge=other.csv"]]
)
def test_facts_come_from_files_and_folders(
    folder: Path, places: list[str], capsys: Shown
) -> None:
    (folder / "other.csv").write_text("a,b\nb,c\n")
    options = [option for place in places for option in ("-f", place)]
    assert run(["query", "rules.dl", *options, "reach(a, ?x)", *ON_REFERENCE]) == OK
    assert sorted(capsys.readouterr().out.split()) == ["b", "c", "x"]


def test_json_is_one_document(folder: Path, capsys: Shown) -> None:
    (folder / "update.toml").write_text('[delete]\nedge = [["a", "b"]]\n')
    code = run(
        ["run", "rules.dl", "-f", "facts", "--then", "update.toml", "--json",
         "--show", "5", *ON_REFERENCE]
    )  # fmt: skip
    assert code == OK
    document = json.loads(capsys.readouterr().out)
    assert document["predicates"]["reach"]["facts"] == 3
    (update,) = document["updates"]
    assert update["predicates"]["reach"] == {"added": 0, "removed": 2}
    assert sorted(update["rows"]["reach"]["removed"]) == [["a", "b"], ["a", "c"]]
    assert update["report"]["strata"]


def test_outputs_are_written(folder: Path, capsys: Shown) -> None:
    assert run(["run", "rules.dl", "-f", "facts", "--out", "out", *ON_REFERENCE]) == OK
    lines = (folder / "out" / "reach.csv").read_text().splitlines()
    assert sorted(lines) == ["a,b", "a,c", "b,c"]
    assert "wrote 1 file to out" in capsys.readouterr().out
    code = run(
        ["run", "rules.dl", "-f", "facts", "--out", "out", "--format", "parquet",
         *ON_REFERENCE]
    )  # fmt: skip
    assert code == OK
    assert (folder / "out" / "reach.parquet").exists()


def test_exports_without_a_folder_are_told(folder: Path, capsys: Shown) -> None:
    text = (folder / "rules.dl").read_text()
    (folder / "rules.dl").write_text(text + '\n@export reach "reach.csv" .')
    assert run(["run", "rules.dl", "-f", "facts", *ON_REFERENCE]) == OK
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "not written: 1 file to export (give --out DIR)"


def test_souffle_programs_run(folder: Path, capsys: Shown) -> None:
    (folder / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    (folder / "prog.dl").write_text(
        ".decl edge(x:number, y:number)\n.input edge\n"
        ".decl reach(x:number, y:number)\n.output reach\n.printsize reach\n"
        "reach(x, y) :- edge(x, y).\nreach(x, z) :- reach(x, y), edge(y, z).\n"
    )
    code = run(
        ["run", "prog.dl", "--syntax", "souffle", "-f", "facts", "--out", "out",
         *ON_REFERENCE]
    )  # fmt: skip
    assert code == OK
    lines = (folder / "out" / "reach.csv").read_text().splitlines()
    assert sorted(lines) == ["1\t2", "1\t3", "2\t3"]
    assert "reach\t3\n" in capsys.readouterr().out


def test_tables_of_updates_count_what_people_know(folder: Path, capsys: Shown) -> None:
    """Auxiliary facts, here those of a projection below `not`, are not among them."""
    (folder / "rules.dl").write_text("sink(?x) :- edge(_, ?x), not edge(?x, _) .")
    (folder / "more.toml").write_text('[insert]\nedge = [["x", "y"]]\n')
    then = ["--then", "more.toml"]
    assert run(["run", "rules.dl", "-f", "facts", *then, *ON_REFERENCE]) == OK
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split("\t")[2:6] == ["1", "0", "2", "0"]


def test_updates_from_a_folder(folder: Path, capsys: Shown) -> None:
    update = folder / "tuesday.2"
    for part in ("insert", "delete"):
        (update / part).mkdir(parents=True)
    (update / "insert" / "edge.csv").write_text("c,d\n")
    (update / "delete" / "edge.csv").write_text("a,b\n")
    (update / "rules+").write_text("end(?x) :- reach(_, ?x), not edge(?x, _) .")
    (update / "rules-.dl").write_text("reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .")
    code = run(["run", "rules.dl", "-f", "facts", "--then", "tuesday.2", *ON_REFERENCE])
    assert code == OK
    out = capsys.readouterr().out
    assert "end\t1\t0\n" in out
    assert "reach\t1\t2\n" in out
    assert "tuesday.2\t" in out


def test_updates_are_applied_in_order(folder: Path, capsys: Shown) -> None:
    (folder / "new.csv").write_text("c,d\n")
    (folder / "one.toml").write_text(
        'title = "first"\nalgorithm = "dred"\n[insert]\nedge = "new.csv"\n'
    )
    (folder / "two.toml").write_text(
        '[rules]\nadd = ["end(?x) :- edge(_, ?x), not edge(?x, _) ."]\n'
    )
    code = run(
        ["run", "rules.dl", "-f", "facts", "--then", "one.toml", "--then", "two.toml",
         "--show", "1", *ON_REFERENCE]
    )  # fmt: skip
    assert code == OK
    out = capsys.readouterr().out
    assert "one\tdred\t1\t0\t4\t0\t" in out
    assert '  + end("d")' in out
    assert "  + … 2 more of reach" in out


def test_a_dry_run_changes_nothing(folder: Path, capsys: Shown) -> None:
    (folder / "one.toml").write_text('[delete]\nedge = [["a", "b"]]\n')
    code = run(
        ["run", "rules.dl", "-f", "facts", "--then", "one.toml", "--dry-run", "--out",
         "out", *ON_REFERENCE]
    )  # fmt: skip
    assert code == OK
    assert "reach\t0\t2\n" in capsys.readouterr().out
    assert len((folder / "out" / "reach.csv").read_text().splitlines()) == 3


@pytest.mark.usefixtures("folder")
def test_yes_or_no(capsys: Shown) -> None:
    for question, reply in (("reach(a, c)", "yes\n"), ("reach(c, a)", "no\n")):
        assert run(["query", "rules.dl", "-f", "facts", question, *ON_REFERENCE]) == OK
        assert capsys.readouterr().out == reply


def test_answers_as_json_and_as_files(folder: Path, capsys: Shown) -> None:
    base = ["query", "rules.dl", "-f", "facts", "reach(a, ?x)", *ON_REFERENCE]
    assert run([*base, "--json", "--limit", "1"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert document["columns"] == ["x"]
    assert document["count"] == 2
    assert len(document["rows"]) == 1
    assert run([*base, "--out", "answer.tsv"]) == OK
    assert sorted((folder / "answer.tsv").read_text().split()) == ["b", "c"]
    assert run([*base, "--limit", "1", "--out", "answer.tsv"]) == OK
    assert len((folder / "answer.tsv").read_text().split()) == 1


@pytest.mark.usefixtures("folder")
def test_questions_have_budgets_too(folder: Path, capsys: Shown) -> None:
    (folder / "endless.dl").write_text("n(0) . n(?y) :- n(?x), ?y = ?x + 1 .")
    question = ["query", "endless.dl", "n(?x)", "--budget-facts", "50", *ON_REFERENCE]
    assert run(question) == BUDGET_EXCEEDED
    assert "n(?y) :- n(?x)" in capsys.readouterr().err


def test_rows_in_a_pipe_are_lines(folder: Path, capsys: Shown) -> None:
    (folder / "p.jsonl").write_text('{"a": "x\\ty", "b": 1}\n{"a": "plain", "b": 2}\n')
    question = ["query", "rules.dl", "-f", "p.jsonl", "p(?a, ?b)", *ON_REFERENCE]
    assert run(question) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a\tb"
    assert sorted(lines[1:]) == ['"x\\ty"\t1', "plain\t2"]
    assert run([*question, "--limit", "1"]) == OK
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_screen_shows_not_very_many_rows(
    folder: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "n.csv").write_text("".join(f"{number}\n" for number in range(250)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run(["query", "rules.dl", "-f", "n.csv", "n(?x)", *ON_REFERENCE]) == OK
    assert "250 rows, 100 of them shown" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["egde.csv", "egde=facts/edge.csv"])
def test_files_that_no_rule_uses_are_mentioned(
    folder: Path, place: str, capsys: Shown
) -> None:
    (folder / "egde.csv").write_text("a,b\n")
    assert run(["run", "rules.dl", "-f", place, *ON_REFERENCE]) == OK
    shown = capsys.readouterr().err
    assert "no rule speaks of `egde`" in shown
    assert f"write edge={place.removeprefix('egde=')}\n" in shown
    asked = ["query", "rules.dl", "-f", place, "egde(?x, ?y)", *ON_REFERENCE]
    assert run(asked) == OK
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "none.dl"], WRONG_INPUT, "no such file"),
        (["run", "rules.dl", "-f", "none.csv"], WRONG_INPUT, "there is no file"),
        (["run", "rules.dl", "-f", "empty"], WRONG_INPUT, "holds no facts"),
        (["run", "rules.dl", "-f", "facts/notes.txt"], WRONG_INPUT, "the format"),
        (["run", "bad.dl"], WRONG_INPUT, "EM201"),
        (["run", "rules.dl", "-f", "facts", "--then", "bad.toml"], WRONG_INPUT,
         "not TOML"),
        (["run", "rules.dl", "-f", "facts", "--then", "odd.toml"], WRONG_INPUT,
         "unknown entry `inserts`"),
        (["run", "rules.dl", "-f", "facts", "--then", "rows.toml"], WRONG_INPUT,
         "neither rows nor a file"),
        (["run", "rules.dl", "-f", "facts", "--then", "empty"], WRONG_INPUT,
         "holds no update"),
        (["run", "rules.dl", "-f", "facts", "--then", "none.toml"], WRONG_INPUT,
         "there is no file"),
        (["query", "rules.dl", "-f", "facts", "raech(?x, ?y)"], WRONG_INPUT,
         "did you mean `reach`?"),
        (["run", "rules.dl", "--engine", "quick"], WRONG_USAGE, "no engine"),
        (["query", "rules.dl", "edge(?x, ?y)", "--engine", "quick"], WRONG_USAGE,
         "use embedded, reference, spark"),
        (["run", "rules.dl", "--algorithm", "quick"], WRONG_USAGE, "choose from auto"),
        (["run", "rules.dl", "-f", "facts", "--algorithm", "counting"], WRONG_INPUT,
         "recursive"),
        (["run", "endless.dl", "--budget-rounds", "5"], BUDGET_EXCEEDED, "5 rounds"),
        (["run", "rules.dl", "--budget-memory", "much"], WRONG_USAGE, "500MB"),
        (["run", "rules.dl", "--budget-seconds", "-1"], WRONG_USAGE, "seconds"),
        (["run", "rules.dl", "-f", "facts", "--then", "latin.toml"], WRONG_INPUT,
         "latin.toml:1:10"),
        (["run", "rules.dl", "-f", "facts", "--then", "arity.toml"], WRONG_INPUT,
         "`edge` has 2 arguments, in row 2 it is given 1"),
        (["run", "rules.dl", "-f", "facts", "--then", "arity.toml"], WRONG_INPUT,
         "update: arity.toml"),
        (["run", "rules.dl", "-f", "facts", "--out", "rules.dl"], WRONG_INPUT,
         "is a file, not a folder"),
        (["run", "rules.dl", "-f", "facts", "--out", "rules.dl/x"], WRONG_INPUT,
         "`rules.dl/x` cannot be made"),
        (["run", "colour.dl", "-f", "facts", "--out", "out"], WRONG_INPUT,
         "no option `colour`"),
        (["query", "rules.dl", "edge(?x, ?y)", "--out", "facts"], WRONG_INPUT,
         "`facts` is a folder"),
        (["query", "rules.dl", "edge(?x, ?y)", "--out", "rules.dl/x.csv"], WRONG_INPUT,
         "is a file, not a folder"),
        (["run", "rules.dl", "-f", "edge=wide.csv"], WRONG_INPUT, "wide.csv:1:5"),
        (["run", "rules.dl", "-f", "facts", "--out", "out", "--format", "doc"],
         WRONG_USAGE, "there is no format `doc`"),
        (["run", "rules.dl", "-f", "facts", "--out", "out", "--format", "jsonl"],
         WRONG_USAGE, "there is no format `jsonl`"),
        (["pipeline", "run", "none.toml", "--engine", "quick"], WRONG_USAGE,
         "no engine"),
        (["run"], WRONG_USAGE, "RULES"),
        (["walk"], WRONG_USAGE, "walk"),
        (["run", "rules.dl", "--speed", "9"], WRONG_USAGE, "--speed"),
    ],
)  # fmt: skip
def test_errors_have_codes_and_no_traceback(
    folder: Path, capsys: Shown, arguments: list[str], code: int, message: str
) -> None:
    (folder / "empty").mkdir()
    (folder / "bad.dl").write_text("p(?x, ?y) :- q(?x) .")
    (folder / "endless.dl").write_text("n(0) . n(?y) :- n(?x), ?y = ?x + 1 .")
    (folder / "bad.toml").write_text("[insert\n")
    (folder / "latin.toml").write_bytes(b'title = "\xe9"')
    (folder / "arity.toml").write_text('[insert]\nedge = [["x", "y"], ["z"]]\n')
    (folder / "wide.csv").write_text("a,b,c\n")
    (folder / "colour.dl").write_text('@export p "p.csv" {colour = "red"} .\np(1) .')
    (folder / "odd.toml").write_text("[inserts]\n")
    (folder / "rows.toml").write_text("[insert]\nedge = 7\n")
    if "--engine" not in arguments and arguments[0] in {"run", "query"}:
        arguments = [*arguments, *ON_REFERENCE]
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("arguments", "code", "error", "message"),
    [
        (["run", "bad.dl"], WRONG_INPUT, "EM201", "head variable `?y`"),
        (["run", "none.dl"], WRONG_INPUT, "EM552", "cannot read"),
        (["run", "endless.dl", "--budget-rounds", "5"], BUDGET_EXCEEDED, "EM602",
         "5 rounds"),
        (["query", "rules.dl", "-f", "facts", "raech(?x, ?y)"], WRONG_INPUT, "EM251",
         "raech"),
        (["run", "rules.dl", "-f", "facts", "--out", "rules.dl"], WRONG_INPUT, "EM725",
         "not a folder"),
        (["run", "rules.dl", "--engine", "quick"], WRONG_USAGE, None, "no engine"),
        (["update"], WRONG_USAGE, None, "--store"),
        (["explain", "bad.dl", "p(a, b)"], WRONG_INPUT, "EM201", "head variable `?y`"),
        (["store", "history", "none"], WRONG_INPUT, "EM741", "no state"),
        (["pipeline", "run", "none.toml"], WRONG_INPUT, "EM711", "none.toml"),
        (["pipeline", "status", "none.toml"], WRONG_INPUT, "EM711", "none.toml"),
    ],
)  # fmt: skip
def test_errors_as_json(
    folder: Path,
    capsys: Shown,
    arguments: list[str],
    code: int,
    error: str | None,
    message: str,
) -> None:
    (folder / "bad.dl").write_text("p(?x, ?y) :- q(?x) .")
    (folder / "endless.dl").write_text("n(0) . n(?y) :- n(?x), ?y = ?x + 1 .")
    assert run([*arguments, "--json"]) == code
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document.keys() == {"error"}
    told = document["error"]
    assert told["exit_code"] == code
    assert told["code"] == error
    assert message in told["message"]
    assert message in shown.err
    if error == "EM201":
        assert (told["file"], told["line"], told["column"]) == ("bad.dl", 1, 7)
        assert [each["code"] for each in told["problems"]] == ["EM201"]
        assert told["reason"] == "every variable must occur in a positive body atom"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["run", "rules.dl", "--out", "rules.dl"], "EM725"),
        (["run", "jsonl.dl", "--out", "out"], "EM712"),
        (["query", "rules.dl", "reach(?x, ?y)", "--out", "facts"], "EM725"),
        (["query", "rules.dl", "reach(?x, ?y)", "--out", "answers.doc"], "EM712"),
        (["query", "rules.dl", "reach(?x,"], "EM101"),
        (["explain", "rules.dl", "reach(a,"], "EM101"),
    ],
)
def test_what_would_fail_after_the_work_fails_before_it(
    folder: Path, capsys: Shown, arguments: list[str], error: str
) -> None:
    """Facts are not even looked for: their folder does not exist."""
    (folder / "jsonl.dl").write_text('@export p "p.jsonl" .\np(1) .')
    assert run([*arguments, "-f", "missing"]) == WRONG_INPUT
    assert f"[{error}]" in capsys.readouterr().err


def test_answers_in_a_file_are_told_as_json(folder: Path, capsys: Shown) -> None:
    asked = ["query", "rules.dl", "-f", "facts", "reach(?x, ?y)", *ON_REFERENCE]
    assert run([*asked, "--out", "new/answers.csv", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told == {"file": "new/answers.csv", "count": 3}
    assert len((folder / "new" / "answers.csv").read_text().splitlines()) == 3


def test_help_teaches_with_examples(capsys: Shown) -> None:
    assert run(["--help"]) == OK
    out = capsys.readouterr().out
    assert "evermat run rules.dl --facts data/ --then monday.toml" in out
    assert "Exit codes" in out
    assert run(["run", "--help"]) == OK
    assert "--syntax souffle" in capsys.readouterr().out


def test_version_and_algorithms(capsys: Shown) -> None:
    assert run(["--version"]) == OK
    assert capsys.readouterr().out == "evermat 0.1.0\n"
    assert run(["algorithms"]) == OK
    out = capsys.readouterr().out
    assert {line.split("\t")[0] for line in out.splitlines()[1:]} >= {"auto", "dred-c"}
    assert run(["algorithms", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["algorithms"][0]["name"] == "auto"


def test_the_command_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from evermat.cli import main; main()", "--version"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == OK
    assert done.stdout == "evermat 0.1.0\n"


@pytest.mark.usefixtures("folder")
def test_tables_are_drawn_on_a_terminal(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert run(["run", "rules.dl", "-f", "facts", *ON_REFERENCE]) == OK
    out = capsys.readouterr().out
    assert "predicate" in out
    assert "\t" not in out
    assert "─" in out


@pytest.mark.parametrize("width", [120, 60, 12])
def test_answers_are_whole_on_any_terminal(
    width: int, tmp_path: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "rules.dl"
    iris = [f"http://example.org/a/rather/long/name/{number}" for number in (4, 5, 6)]
    rules.write_text(f"p({', '.join(f'<{iri}>' for iri in iris)}, 7) .")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run(["query", str(rules), "p(?x, ?y, ?z, ?n)", *ON_REFERENCE]) == OK
    out = capsys.readouterr().out
    assert "…" not in out
    if width < 60:
        assert all(f": <{iri}>\n" in out for iri in iris)
        assert ": 7\n" in out
    else:
        at = out.index("<http")
        assert sum(out[at:].count(letter) for letter in "456") == 3


def test_shells_complete_commands(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_EVERMAT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "evermat run --synt")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run([]) == OK
    assert capsys.readouterr().out.split() == ["--syntax"]


def test_nobody_need_listen() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m evermat algorithms >&- 2>&-"],
        check=False,
    )
    assert done.returncode == OK


def test_rdf_files_name_predicates_by_their_iris(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dl"
    rules.write_text("""
        @prefix : <http://e.org/a#> .
        @prefix o: <http://e.org/a/> .
        given(:x, :y) .
        :b(?x) :- given(?x, _) .
        o:b(?x, ?y) :- given(?x, ?y) .
    """)
    out = tmp_path / "out"
    command = ["run", str(rules), "--out", str(out), "--format", "nt", *ON_REFERENCE]
    assert run(command) == OK
    assert {file.read_text() for file in out.iterdir()} == {
        f"<http://e.org/a#x> <{RDF_TYPE}> <http://e.org/a#b> .\n",
        "<http://e.org/a#x> <http://e.org/a/b> <http://e.org/a#y> .\n",
    }


def test_exports_in_any_format_or_none(tmp_path: Path, capsys: Shown) -> None:
    rules = tmp_path / "rules.dl"
    text = '@prefix : <http://e.org/> . :p(:a, :b) . @export :p "p.ttl" .'
    rules.write_text(text)
    out = tmp_path / "out"
    command = ["run", str(rules), "--out", str(out), *ON_REFERENCE]
    assert run(command) == OK
    written = out / "p.ttl"
    assert "<http://e.org/a> <http://e.org/p> <http://e.org/b>" in written.read_text()
    written.unlink()
    rules.write_text(text + '@export :p "p.jsonl" .')
    assert run(command) == WRONG_INPUT
    assert "only read" in capsys.readouterr().err
    assert not written.exists()


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "evermat", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("evermat ")
