"""The shell: lines in, answers out."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.cli import run
from evermat.shell.session import COMMANDS, Session

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


@pytest.fixture
def session() -> Session:
    kb = KnowledgeBase(RULES, engine="reference")
    kb.insert("edge", [("a", "b"), ("b", "c")])
    return Session(kb)


def test_queries_are_answered(session: Session) -> None:
    assert session.answer('reach("a", ?x)').splitlines()[0] == "x"
    assert session.answer('reach("a", ?x)').endswith("(2 rows)")
    assert session.answer('reach("a", "c")') == "yes"
    assert session.answer('reach("c", "a")') == "no"


def test_statements_change_and_undo_takes_back(session: Session) -> None:
    assert session.answer('edge("c", "d") .').endswith("4 facts added, 0 removed")
    assert session.answer('reach("a", "d")') == "yes"
    told = session.answer('- edge("a", "b") .')
    assert '- reach("a", "d")' in told.splitlines()
    session.answer(".undo")
    assert session.answer('reach("a", "d")') == "yes"
    planned = session.answer('.plan - edge("a", "b") .')
    assert planned.endswith("if it were done")
    assert session.answer('reach("a", "d")') == "yes"


def test_every_command_answers(session: Session) -> None:
    arguments = {".explain": 'reach("a", "c")', ".facts": "edge"}
    session.answer('edge("x", "y") .')
    for name in COMMANDS:
        found = session.answer(f"{name} {arguments.get(name, '')}")
        assert found or name == ".quit"
        assert "[EM" not in found, found
    assert session.is_over
    assert 'edge("a", "b")   explicit' in session.answer('.explain reach("a", "c")')


def test_mistakes_are_told_and_nothing_ends(session: Session) -> None:
    assert "EM251" in session.answer("rech(?x, ?y)")
    assert "EM201" in session.answer("p(?x) :- q(?y) .")
    assert "there is no command" in session.answer(".nonsense")
    assert not session.is_over


def test_statements_may_take_several_lines(session: Session) -> None:
    assert not session.is_complete("back(?y, ?x) :- edge(?x, ?y),")
    assert session.is_complete("back(?y, ?x) :-\n edge(?x, ?y) .")
    assert session.is_complete("edge(?x, ?y)")
    assert {"reach", "edge", ".undo"} <= set(session.completions())


def test_lines_of_a_pipe_are_answered(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = tmp_path / "rules.dl"
    rules.write_text(f'{RULES} edge("a", "b") .')
    lines = 'edge("b", "c") .\nfar(?x, ?z) :-\n  edge(?x, ?y), edge(?y, ?z) .\n'
    lines += "far(?x, ?y)"
    monkeypatch.setattr("evermat.cli.shell.run", _run_with(io.StringIO(lines)))
    assert run(["shell", str(rules), "--engine", "reference"]) == 0
    assert '"a"  "c"' in capsys.readouterr().out


def _run_with(source: io.StringIO) -> object:
    from evermat.shell.terminal import run as answer_lines  # noqa: PLC0415  see above

    return lambda session: answer_lines(session, source)
