"""Notebooks show tables and drawings, and have cells in the language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from evermat import Change, Explanation, KnowledgeBase, Result
from evermat.explain.drawing import proof_svg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from IPython.core.interactiveshell import InteractiveShell

pytest.importorskip("IPython")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def notebook() -> Iterator[InteractiveShell]:
    from IPython.core.interactiveshell import (  # noqa: PLC0415  see above
        InteractiveShell,
    )

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "evermat.notebook")
    yield shell
    InteractiveShell.clear_instance()


def test_cells_add_and_lines_ask(notebook: InteractiveShell) -> None:
    def run(text: str) -> Any:
        found = notebook.run_cell(text)  # type: ignore[no-untyped-call]
        found.raise_error()
        return found.result

    made = run("%%evermat\nreach(?x, ?y) :- edge(?x, ?y) .\nedge(a, b) .")
    assert isinstance(made, Change)
    assert made.sizes == {"edge": (1, 0), "reach": (1, 0)}
    assert isinstance(run("kb"), KnowledgeBase)
    answer = run("%evermat reach(a, ?x)")
    assert isinstance(answer, Result)
    assert answer.to_list() == [("b",)]
    why = run("%evermat why reach(a, b)")
    assert isinstance(why, Explanation)
    assert "<svg" in why._repr_html_()
    run("%%evermat other\np(1) .")
    assert run("other['p'].to_list()") == [(1,)]
    assert run("kb.predicates") == {"edge": 2, "reach": 2}


def test_drawings_have_every_fact_and_rule_of_a_proof() -> None:
    kb = KnowledgeBase(
        'a(?x) :- b(?x, ?y), not c(?y), ?x != "<&>" . b(?x, ?y) :- d(?x, ?y) .',
        engine="reference",
    )
    kb.load({"d": [("p", "<q>")], "c": [("z",)]})
    drawn = ET.fromstring(proof_svg(kb.explain("a(p)")))  # noqa: S314  our own
    texts = [each.text for each in drawn.iter(f"{SVG}text")]
    for fact in ('a("p")', 'b("p", "<q>")', 'd("p", "<q>")', 'no c("<q>")'):
        assert fact in texts
    assert "d(?x, ?y) ." in " ".join(filter(None, texts))
    boxes = [each.attrib for each in drawn.iter(f"{SVG}rect")]
    assert len(boxes) == 4
    width, height = float(drawn.attrib["width"]), float(drawn.attrib["height"])
    for box in boxes:
        assert 0 <= float(box["x"]) <= width - float(box["width"])
        assert 0 <= float(box["y"]) <= height - float(box["height"])


def test_what_does_not_hold_is_drawn_and_long_proofs_are() -> None:
    kb = KnowledgeBase("n(?x + 1) :- n(?x), ?x < 1200 . n(0) .", engine="reference")
    assert "does not hold" in proof_svg(kb.explain("n(7000)"))
    assert proof_svg(kb.explain("n(1200)")).count("<rect") == 1201


def test_a_knowledge_base_is_shown_as_a_table() -> None:
    kb = KnowledgeBase("q(?x) :- p(?x) . p(1) .", engine="reference")
    assert "<td>q</td><td>1</td><td>0</td>" in kb._repr_html_()
    assert "<table>" in KnowledgeBase(engine="reference")._repr_html_()
