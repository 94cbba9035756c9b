"""What may be handed over as rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import (
    EvermatError,
    KnowledgeBase,
    Rule,
    parse_program,
    predicate,
    variables,
)
from evermat.kb.inputs import RuleFileError, RuleInputError
from evermat.kb.program_files import read_program
from evermat.lang import check_program

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.kb.inputs import RuleInput


def test_a_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "more.dl").write_text("r(?x) :- q(?x) .")
    (tmp_path / "rules.dl").write_text('q(?x) :- p(?x) .\n@include "more.dl" .\n')
    kb = KnowledgeBase(tmp_path / "rules.dl", engine="reference")
    kb.insert("p", [(1,)])
    assert kb.contains("r", (1,))


def test_files_that_a_program_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("1\n2\n")
    (tmp_path / "rules.dl").write_text('@import p "p.csv" .\nq(?x) :- p(?x), ?x > 1 .')
    kb = KnowledgeBase(tmp_path / "rules.dl", engine="reference")
    assert set(kb.facts("q")) == {(2,)}


def test_other_languages_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "reach.dl").write_text(
        ".decl edge(x:number, y:number)\n.input edge\n"
        ".decl reach(x:number, y:number)\n.output reach\n"
        "reach(x, y) :- edge(x, y).\nreach(x, z) :- reach(x, y), edge(y, z).\n"
    )
    kb = KnowledgeBase(tmp_path / "reach.dl", engine="reference")
    assert set(kb.facts("reach")) == {(1, 2), (2, 3), (1, 3)}
    assert kb.facts("reach").columns == ("x", "y")


def test_lists_mix_all_forms(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text("@prefix e: <http://e/> . b(?x) :- a(?x) .")
    (x,) = variables("x")
    rules: list[RuleInput] = [
        tmp_path / "a.dl",
        "c(?x) :- b(?x) . c(e:one) .",
        parse_program("d(?x) :- c(?x) ."),
        parse_program("e(?x) :- d(?x) .").rules[0],
    ]
    kb = KnowledgeBase(rules, engine="reference")
    kb.insert("a", [(1,)])
    assert kb.count("e") == 2
    assert predicate("a")(x).arity == 1


@pytest.mark.parametrize("text", ["rules.dl", "folder/rules.rls", " ./r.evm\n"])
def test_a_text_that_is_a_file_name_is_refused(text: str) -> None:
    with pytest.raises(RuleInputError, match="looks like a file name") as caught:
        KnowledgeBase(text)
    assert "Path(" in str(caught.value)


def test_missing_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleFileError, match="no such file"):
        KnowledgeBase(tmp_path / "none.dl")
    (tmp_path / "latin.dl").write_bytes('p("é") .'.encode("latin-1"))
    with pytest.raises(RuleFileError, match="not UTF-8"):
        KnowledgeBase(tmp_path / "latin.dl")


@pytest.mark.parametrize("rules", [7, [7], [["p(a) ."]]])
def test_other_types_are_refused(rules: object) -> None:
    with pytest.raises(RuleInputError, match="rules cannot be given as"):
        KnowledgeBase(rules)  # type: ignore[arg-type]


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.dl").write_text("p(?x) :- q(?x)\nr(a) .")
    with pytest.raises(EvermatError, match=r"bad\.dl:1:14"):
        KnowledgeBase(tmp_path / "bad.dl")


def test_a_file_that_is_included_by_what_it_includes_is_read_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.dl").write_text('p(1) . q(?x) :- p(?x) . @include "b.dl" .')
    (tmp_path / "b.dl").write_text('@include "a.dl" . p(2) .')
    program = read_program(tmp_path / "a.dl")
    assert len(program.rules) == 1
    assert check_program(program).warnings == ()


def test_rules_as_objects_have_heads_with_names() -> None:
    (x,) = variables("x")
    body = (predicate("p")(x),)
    with pytest.raises(EvermatError, match="no head"):
        KnowledgeBase(Rule(heads=(), body=body))
    for name in ("", "~hidden"):
        with pytest.raises(EvermatError, match="cannot be the name of a predicate"):
            KnowledgeBase(Rule(heads=(predicate(name)(x),), body=body))


def test_names_with_blanks_can_be_written_as_iris() -> None:
    kb = KnowledgeBase(r"<two\u0020words>(?x) :- p(?x) . p(1) .", engine="reference")
    assert kb.facts("two words").to_list() == [(1,)]
