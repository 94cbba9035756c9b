"""The documentation is true: its Python blocks run, its links lead somewhere.

A block of Python is run in the namespace of its page. A block of text that follows it
directly is what it prints.
"""

from __future__ import annotations

import contextlib
import doctest
import gzip
import importlib
import io
import re
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat import KnowledgeBase

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([PROJECT / "README.md", *PROJECT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
DOCTESTED = ["evermat", "evermat.api", "evermat.cli.options", "evermat.kb.transaction",
             "evermat.lang.syntax", "evermat.results.change", "evermat.results.result",
             "evermat.values"]  # fmt: skip


def files_for_data(folder: Path) -> dict[str, object]:
    """What the page on data takes for granted: some files, and a knowledge base."""
    (folder / "edge.csv").write_text("a,b\nb,c\n")
    (folder / "staff.csv").write_text("ann,41\nbob,29\n")
    (folder / "staff.txt").write_text("ann;41\nbob;29\n")
    staff = pa.table({"boss": ["bob"], "age": [41], "name": ["ann"]})
    pq.write_table(staff, folder / "staff.parquet")
    with gzip.open(folder / "data.ttl.gz", "wt") as file:
        file.write("<http://e/s> <http://e/p> <http://e/o> .")
    rdf = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    (folder / "ontology.owl").write_text(rdf)
    kb = KnowledgeBase(engine="reference")
    kb.load(rdf=folder / "data.ttl.gz")
    return {"kb": kb}


PREPARATIONS = {"docs/data.md": files_for_data}


def name(page: Path) -> str:
    return str(page.relative_to(PROJECT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run_and_print_what_is_shown(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    namespace: dict[str, object] = {"__name__": "page"}
    if name(page) in PREPARATIONS:
        namespace |= PREPARATIONS[name(page)](tmp_path)
    monkeypatch.chdir(tmp_path)
    for block, following in zip_longest(blocks, blocks[1:]):
        if block[1] != "python":
            continue
        line = text.count("\n", 0, block.start()) + 2
        # Blank lines in front give errors the line number of the page.
        code = compile("\n" * (line - 1) + block[2], str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102  our own documentation
        if following is not None and following[1] == "text":
            between = text[block.end() : following.start()]
            if not between.strip():
                assert printed.getvalue() == following[2], f"{name(page)}:{line}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for link, anchor in LINK.findall(text):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What links to the headings of a page end with, as GitHub makes them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = (re.sub(r"[^\w\s-]", "", title.lower()) for title in HEADING.findall(text))
    return {title.replace(" ", "-") for title in titles}


@pytest.mark.parametrize("module", DOCTESTED)
def test_examples_in_docstrings_are_true(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0
    assert found.attempted > 0
