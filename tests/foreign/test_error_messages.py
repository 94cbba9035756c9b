"""Every construct that cannot be read is named, at its place, in these exact words."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from evermat.errors import ProgramError
from evermat.kb.program_files import Syntax, UnknownSyntaxError, read_program

PROGRAMS = sorted(
    path
    for path in (Path(__file__).parent / "errors").iterdir()
    if path.suffix != ".txt"
)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_message(path: Path) -> None:
    syntax = cast("Syntax", path.suffix.removeprefix("."))
    with pytest.raises(ProgramError) as caught:
        read_program(path.read_text(encoding="utf-8"), syntax)
    expected = path.with_name(f"{path.name}.txt").read_text(encoding="utf-8")
    assert f"{caught.value}\n" == expected


def test_every_syntax_has_messages() -> None:
    suffixes = {path.suffix for path in PROGRAMS}
    assert suffixes == {".souffle", ".nemo", ".dlog", ".sparql-rl"}


def test_a_syntax_that_there_is_not() -> None:
    with pytest.raises(UnknownSyntaxError) as caught:
        read_program("p(a) .", cast("Syntax", "prolog"))
    assert str(caught.value) == (
        "UnknownSyntaxError [EM731]: there is no syntax `prolog`\n"
        " = help: use one of auto, evermat, souffle, nemo, dlog, sparql-rl"
    )
