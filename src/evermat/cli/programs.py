"""Programs on the command line: in our syntax, or in one of the others that we read."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.rule_inputs import read_rule_file, read_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.lang.syntax import Program


class Syntax(StrEnum):
    """How the rules are written; `auto` goes by the suffix of the file."""

    AUTO = "auto"
    EVERMAT = "evermat"
    SOUFFLE = "souffle"
    NEMO = "nemo"
    DLOG = "dlog"


_BY_SUFFIX = {".rls": Syntax.NEMO, ".dlog": Syntax.DLOG}


def read_program(
    path: Path, syntax: Syntax = Syntax.AUTO, *, folders: Sequence[Path] = ()
) -> Program:
    """Read a program.

    Args:
        path: the file.
        syntax: how it is written.
        folders: where the files that it imports are looked for, before its own folder.
    """
    if syntax is Syntax.AUTO:
        syntax = _BY_SUFFIX.get(path.suffix.lower(), Syntax.EVERMAT)
    if syntax is Syntax.EVERMAT and not folders:
        return read_rules(path)
    return _with_places(_parse(path, syntax), [*folders, path.parent])


def _parse(path: Path, syntax: Syntax) -> Program:
    name, text = str(path), read_rule_file(path)
    match syntax:
        case Syntax.SOUFFLE:
            from evermat.lang.foreign.souffle import read_souffle

            return read_souffle(text, name=name)
        case Syntax.NEMO:
            from evermat.lang.foreign.nemo import read_nemo

            return read_nemo(text, name=name)
        case Syntax.DLOG:
            from evermat.lang.foreign.dlog import read_dlog

            return read_dlog(text, name=name)
        case _:
            from evermat.lang.parser import parse_program

            return parse_program(text, name=name, folder=path.parent)


def _with_places(program: Program, folders: Sequence[Path]) -> Program:
    """The program with the paths of its imports made independent of its folder."""
    sources = tuple(
        replace(source, path=str(_place(source.path, folders)))
        for source in program.sources
    )
    return replace(program, sources=sources)


def _place(path: str, folders: Sequence[Path]) -> Path:
    for folder in folders:
        if (folder / path).exists():
            return folder / path
    return folders[-1] / path
