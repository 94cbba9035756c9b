"""Editors are told of problems, definitions and rules."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from evermat.language_server import (
    definitions,
    diagnostics,
    hover,
    program_of,
    word_at,
)

PROJECT = Path(__file__).resolve().parents[2]
TEXT = """% é𝄞
@declare edge(from: string, to: string) .
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


def test_problems_have_places_codes_and_advice() -> None:
    assert diagnostics(TEXT, "a.dl") == []
    (wrong, *_) = diagnostics(f"{TEXT}p(?x) :- edge(?y, ?y) .", "a.dl")
    assert (wrong.code, wrong.range.start.line) == ("EM201", 4)
    assert wrong.range.start.character == 2
    assert wrong.severity == types.DiagnosticSeverity.Error
    warnings = diagnostics(f"{TEXT}p(?x) :- edge(?x, ?lone) .", "a.dl")
    assert {each.severity for each in warnings} == {types.DiagnosticSeverity.Warning}


def test_columns_are_counted_as_the_protocol_does() -> None:
    before = 'p("𝄞", '
    (found, *_) = diagnostics(f"{before}?x) :- q(?y) .", "a.dl")
    assert found.code == "EM201"
    assert found.range.start.character == len(before) + 1


def test_names_are_found_defined_and_described() -> None:
    program, _, _ = program_of(TEXT, "a.dl")
    assert program is not None
    assert word_at(TEXT, types.Position(3, 18)) == "reach"
    assert word_at(TEXT, types.Position(3, 7)) is None
    places = [each.span.line for each in definitions(program) if each[0] == "reach"]
    assert places == [3, 4]
    said = hover(program, "edge")
    assert said is not None
    assert "@declare edge(from: string, to: string) ." in said
    assert "read by 2 rules" in said
    assert hover(program, "nothing") is None


def test_an_editor_gets_answers(tmp_path: Path) -> None:
    async def edit() -> tuple[list[types.Diagnostic], object, object]:
        client = LanguageClient("test", "1")
        told: list[types.Diagnostic] = []
        done = asyncio.Event()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def noted(params: types.PublishDiagnosticsParams) -> None:
            told.extend(params.diagnostics)
            done.set()

        await client.start_io(sys.executable, "-m", "evermat", "lsp")
        await client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities())
        )
        uri = (tmp_path / "rules.dl").as_uri()
        text = f"{TEXT}p(?x) :- edge(?y, ?y) ."
        item = types.TextDocumentItem(uri, "evermat", 1, text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await asyncio.wait_for(done.wait(), 60)
        good = types.TextDocumentItem(uri.replace("rules", "good"), "evermat", 1, TEXT)
        client.text_document_did_open(types.DidOpenTextDocumentParams(good))
        place = types.TextDocumentIdentifier(good.uri), types.Position(3, 18)
        hovered = await client.text_document_hover_async(types.HoverParams(*place))
        defined = await client.text_document_definition_async(
            types.DefinitionParams(*place)
        )
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]
        return told, hovered, defined

    told, hovered, defined = asyncio.run(edit())
    assert told[0].code == "EM201"
    assert isinstance(hovered, types.Hover)
    assert isinstance(defined, list)
    assert len(defined) == 2


def test_the_grammar_of_the_editor_tells_parts_apart() -> None:
    path = PROJECT / "editors" / "vscode" / "syntaxes" / "evermat.tmLanguage.json"
    grammar = json.loads(path.read_text(encoding="utf-8"))
    rule = 'far(?x, "a b", 4.2) :- not near(?x, _), :p(?x), ?n = count{ ?y : q(?y) } .'
    found = {
        each["name"].split(".")[-2]: re.search(each["match"], rule)
        for each in grammar["patterns"]
        if "match" in each
    }
    for name, text in (
        ("parameter", "?x"), ("if", ":-"), ("not", "not"), ("aggregate", "count"),
        ("function", "far"), ("numeric", "4.2"),
    ):  # fmt: skip
        match = found[name]
        assert match is not None
        assert match[0] == text
