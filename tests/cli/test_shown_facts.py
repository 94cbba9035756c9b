"""What the commands show of facts can be asked about as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from evermat import KnowledgeBase
from evermat.cli import OK, run

ON_REFERENCE = ["--engine", "reference"]
TERMS = [
    "word",
    '"two words"',
    '"it\'s \\"quoted\\""',
    '"two\\nlines, and a\\ttab"',
    '"back\\\\slash"',
    '""',
    '"true"',
    '"?x"',
    '"7"',
    '"Ünïcode 😀"',
    "7",
    "-7",
    "1234567890123456789012345678901234567890",
    "1.50",
    "-0.5",
    "1e300",
    "-2.5E-7",
    '"INF"^^xsd:double',
    "true",
    ":a",
    "<http://example.org/other#b>",
    "<http://example.org/with\\u0020blank>",
    "_:b1",
    '"2024-01-31"^^xsd:date',
    '"odd \\"one\\""^^:datatype',
    '"chat"@fr',
    '"shalom"@he--rtl',
]
PREFIX = "@prefix : <http://example.org/> .\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    facts = "\n".join(f"p({at}, {term}) ." for at, term in enumerate(TERMS))
    facts += "\nnothing . [:a, :b, 1] . <odd\\u0020name>(1) . <contains>(1) ."
    (tmp_path / "none.dl").write_text(PREFIX)
    (tmp_path / "all.dl").write_text(PREFIX + facts)
    (tmp_path / "update.toml").write_text('[rules]\nadd_file = "all.dl"\n')
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_facts_of_changes_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    update = ["--then", "update.toml", "--show", "99", *ON_REFERENCE]
    assert run(["run", "none.dl", *update]) == OK
    lines = capsys.readouterr().out.split("\n")
    facts = [line.removeprefix("  + ") for line in lines if line.startswith("  + ")]
    assert len(facts) == len(TERMS) + 4
    kb = KnowledgeBase(Path("all.dl"), engine="reference")
    for fact in facts:
        assert str(kb.explain(fact)) == f"{fact}   explicit"
        assert len(kb.query(fact)) == 1
    assert run(["explain", "all.dl", facts[-1], *ON_REFERENCE]) == OK


@pytest.mark.usefixtures("folder")
def test_terms_of_answers_can_be_asked_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["query", "all.dl", "p(?n, ?x)", "--terms", *ON_REFERENCE]) == OK
    rows = capsys.readouterr().out.splitlines()[1:]
    assert len(rows) == len(TERMS)
    kb = KnowledgeBase(Path("all.dl"), engine="reference")
    for number, term in (row.split("\t") for row in rows):
        assert kb.query(f"p(?n, {term})").to_list() == [(int(number),)]
