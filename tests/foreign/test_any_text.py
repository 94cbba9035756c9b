"""Whatever a text says, it is read or refused with an error of ours."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.errors import ProgramError
from evermat.lang.dialects.dlog import read_dlog
from evermat.lang.dialects.nemo import read_nemo
from evermat.lang.dialects.souffle import read_souffle

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.lang.syntax import Program

WORDS = r"""
    . , ; : :- ( ) [ ] { } ! ~ = != < <= > >= + - * / % ^ | @ # $ _ _: \ " ' ` é
    0 1 2.5 1e3 0x1F 0b1 7u x X ?x !x $x p q ex: ex:a <a> <http://a/b> "s" "\q" 'c'
    f"{?x}" f"{" "c"@en "1"^^xsd:integer true false nil not count sum min max cat
    substr match contains range band as .decl .type .input .output .printsize .pragma
    .plan .comp .init number symbol eqrel inline IO=file filename="a" TE PREFIX FILTER
    @prefix @base @import @export @output @source @declare @parameter csv dsv{
    resource= format=(any,) load-csv #[ /* */ // #include
"""
PIECES = [*WORDS.split(), "\n"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).flatmap(
    lambda pieces: st.sampled_from([" ".join(pieces), "".join(pieces)])
)
READERS = [read_souffle, read_nemo, read_dlog]


@pytest.mark.parametrize("read", READERS)
@given(text=TEXTS | st.text(max_size=30))
def test_any_text(read: Callable[[str], Program], text: str) -> None:
    with contextlib.suppress(ProgramError):
        read(text)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "p(" + "(" * 5000 + "1" + ")" * 5000 + ").",
        "p(" + "-" * 5000 + "1).",
        "p(" + "1+" * 5000 + "1).",
        "p(SUM(" + "1," * 5000 + "1)).",
        ".decl p(x:number) p(1) :- " + "!" * 5000 + "p(1).",
        ".decl p(x:number) p(1) :- " + "(" * 5000 + "p(1)" + ")" * 5000 + ".",
        ".decl p(x:number) p(1) :- " + ",".join(["(p(1);p(2))"] * 40) + ".",
    ],
    ids=["groups", "signs", "sum", "sums", "negations", "nested body", "alternatives"],
)
def test_a_text_that_is_too_deep(read: Callable[[str], Program], text: str) -> None:
    with contextlib.suppress(ProgramError):
        read(text)
