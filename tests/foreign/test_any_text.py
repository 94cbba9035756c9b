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
from evermat.lang.dialects.sparql_rl import read_sparql_rl

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.lang.syntax import Program

WORDS = r"""
    . , ; : :- ( ) [ ] { } ! ~ = != < <= > >= + - * / % ^ | @ # $ _ _: \ " ' ` é
    0 1 2.5 1e3 0x1F 0b1 7u x X ?x !x $x p q ex: ex:a <a> <http://a/b> "s" "\q" 'c'
    f"{?x}" f"{" "c"@en "1"^^xsd:integer true false nil not count sum min max cat
    substr match contains range band as .decl .type .input .output .printsize .pragma
    .plan .comp .init number symbol eqrel inline IO=file filename="a" TE PREFIX FILTER
    RULE WHERE NOT SET( := DATA BASE VERSION "1.2" && || IN IF( ISIRI( STR( ^a << a
    @prefix @base @import @export @output @source @declare @parameter csv dsv{
    resource= format=(any,) load-csv #[ /* */ // #include
"""
PIECES = [*WORDS.split(), "\n"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).flatmap(
    lambda pieces: st.sampled_from([" ".join(pieces), "".join(pieces)])
)
READERS = [read_souffle, read_nemo, read_dlog, read_sparql_rl]


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
        "RULE { } WHERE { FILTER " + "(" * 5000 + "1" + ")" * 5000 + "}",
        "RULE { } WHERE { FILTER(" + "!" * 5000 + "true) }",
        "RULE { } WHERE { " + "[a " * 5000 + "1" + "]" * 5000 + "}",
        "RULE { } WHERE { ?x a 1 " + "FILTER(?x = 1 || ?x = 2)" * 40 + "}",
        "RULE { } WHERE { NOT { ?x a 1 " + "FILTER(?x < 1 || ?x > 2)" * 40 + "} }",
    ],
)
def test_a_text_that_is_too_deep(read: Callable[[str], Program], text: str) -> None:
    with contextlib.suppress(ProgramError):
        read(text)
