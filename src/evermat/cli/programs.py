"""Programs on the command line: in our syntax, or in one of the others that we read."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from evermat.kb.program_files import recognised
from evermat.kb.rule_inputs import read_rule_file, reading

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evermat.lang.syntax import Program


class Syntax(StrEnum):
    """How the rules are written; `auto` goes by suffix and content."""

    AUTO = "auto"
    EVERMAT = "evermat"
    SOUFFLE = "souffle"
    NEMO = "nemo"
    DLOG = "dlog"


def says_what_to_read(path: Path, syntax: Syntax) -> bool:
    """Whether a program must name its files: those of Soufflé and Nemo do."""
    if syntax is Syntax.AUTO:
        with reading(path):
            syntax = Syntax(recognised(path.name, path.read_text("utf-8", "replace")))
    return syntax in {Syntax.SOUFFLE, Syntax.NEMO}


def read_program(
    path: Path, syntax: Syntax = Syntax.AUTO, *, folders: Sequence[Path] = ()
) -> Program:
    """Read a program; the paths of its imports no longer depend on its folder.

    Args:
        path: the file.
        syntax: how it is written.
        folders: where the files that it imports are looked for, before its own folder.
    """
    program = read_rule_file(path, syntax.value)
    sources = tuple(
        replace(source, path=str(_place(source.path, [*folders, path.parent])))
        for source in program.sources
    )
    return replace(program, sources=sources)


def _place(path: str, folders: Sequence[Path]) -> Path:
    for folder in folders:
        for place in (folder / path, folder / "facts" / path):
            if place.exists():
                return place
    return folders[-1] / path
