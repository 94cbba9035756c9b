"""`evermat check` and `evermat fmt`, and the programs that commands read.

Programs are in Evermat's syntax, or in another supported one. Commands that also know
the facts warn of rules that would silently derive nothing, or something other than
intended; `evermat check` finds such rules from the program alone.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import replace
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from evermat.cli.output import problem_document
from evermat.columns import as_terms, kinds_in
from evermat.errors import EvermatError, ForgottenVariableWarning
from evermat.errors.wording import counted
from evermat.functions import ANY
from evermat.kb.inputs import read_rule_file, reading
from evermat.kb.program_files import recognised
from evermat.lang.checks import check_program
from evermat.lang.lint import lint
from evermat.lang.syntax import TRIPLE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evermat.cli.output import Output
    from evermat.functions import Type
    from evermat.lang.syntax import Program


_SHOWN = 10
"""Number of problems of one kind that are shown."""


def check_files(
    paths: Sequence[Path], syntax: Syntax, output: Output, *, is_strict: bool
) -> bool:
    """Report all problems of all files; return whether there are no errors."""
    documents = []
    is_fine = True
    for path in paths:
        program, errors, warnings = _check(path, syntax)
        modules = [] if errors or program is None else _modules(program)
        is_fine = is_fine and not errors and not (is_strict and warnings)
        if not output.is_json:
            _show((*errors, *warnings))
        found = f"{counted(len(errors), 'error')}, {counted(len(warnings), 'warning')}"
        output.say(f"{path}: {found if errors or warnings else 'no problems'}")
        for module in modules:
            output.say(f"  {module['name']}:")
            for rule in module["rules"]:
                output.say(f"    {rule}")
        documents.append(
            {
                "file": str(path),
                "errors": [problem_document(problem) for problem in errors],
                "warnings": [problem_document(problem) for problem in warnings],
                "modules": modules,
            }
        )
    output.document["files"] = documents
    return is_fine


def _show(problems: Sequence[EvermatError]) -> None:
    """Print problems, up to a limit for each kind."""
    counts: Counter[str] = Counter()
    for problem in problems:
        counts[problem.code] += 1
        if counts[problem.code] <= _SHOWN:
            print(problem.render(), end="\n\n", file=sys.stderr, flush=True)  # noqa: T201
    for code, number in counts.items():
        if number > _SHOWN:
            more = f"and {number - _SHOWN:,} more of {code}; --json lists them all"
            print(more, end="\n\n", file=sys.stderr, flush=True)  # noqa: T201


def _check(
    path: Path, syntax: Syntax
) -> tuple[Program | None, Sequence[EvermatError], Sequence[EvermatError]]:
    try:
        program = read_program(path, syntax)
    except EvermatError as error:
        return None, getattr(error, "problems", None) or (error,), ()
    report = check_program(program)
    return program, report.errors, report.warnings


class _Module(TypedDict):
    name: str
    rules: list[str]


def _modules(program: Program) -> list[_Module]:
    """Return the modules for rules of a program, each with its rules as text."""
    from evermat.lang.normalise import normalise
    from evermat.lang.strata import stratify
    from evermat.maintenance.modules import find_modules

    return [
        {"name": module.name, "rules": [str(rule.written) for rule in module.rules]}
        for stratum in stratify(normalise(program.rules)).strata
        for module in find_modules(stratum.recursive_rules, stratum.is_local)
    ]


class Mode(Enum):
    """What to do with a formatted text."""

    PRINT = auto()
    WRITE = auto()
    CHECK = auto()


def format_files(paths: Sequence[Path], mode: Mode) -> bool:
    """Format files; return false if a check finds one that would change."""
    from evermat.lang.printer import format_source

    is_fine = True
    for path in paths:
        with reading(path):
            text = path.read_text(encoding="utf-8")
        formatted = format_source(text, name=str(path))
        if mode is Mode.PRINT:
            print(formatted, end="")  # noqa: T201  the result
            continue
        if formatted == text:
            continue
        if mode is Mode.WRITE:
            path.write_text(formatted, encoding="utf-8")
            print(f"formatted {path}")  # noqa: T201
        else:
            is_fine = False
            print(f"would format {path}")  # noqa: T201
    return is_fine


# ------------------------------------------------------------------------------- doubts


_SHOWN = 10
"""Number of warnings that are shown; `evermat check` shows more."""


def warn(program: Program, data: Mapping[str, pa.Table]) -> None:
    """Warn of probable mistakes in a program, given its facts."""
    kinds = {
        name: [_kinds(column) for column in table.columns]
        for name, table in data.items()
        if name != TRIPLE  # its columns have constants of all kinds
    }
    found = [
        each
        for each in lint(program, kinds)
        if not isinstance(each, ForgottenVariableWarning)
        or not all(_occurs(word, data) for word in each.words)
    ]
    for each in found[:_SHOWN]:
        warnings.warn(each, stacklevel=2)


def _kinds(column: pa.ChunkedArray) -> Type:
    if pa.types.is_struct(column.type):
        return frozenset(kinds_in(as_terms(column)))
    if not len(column):
        return frozenset()
    if pa.types.is_integer(column.type):
        return frozenset({Kind.INTEGER})
    return frozenset({Kind.STRING}) if _is_string(column.type) else ANY


def _is_string(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _occurs(word: str, data: Mapping[str, pa.Table]) -> bool:
    """Return whether any fact contains a word, which is then a constant after all."""
    return any(
        pc.any(pc.equal(texts, word)).as_py()
        for table in data.values()
        for column in table.columns
        for texts in _texts(column)
    )


def _texts(column: pa.ChunkedArray) -> list[pa.Array]:
    if pa.types.is_struct(column.type):
        return [chunk.field(1) for chunk in column.chunks]
    return list(column.chunks) if _is_string(column.type) else []


# ----------------------------------------------------------------------------- programs


class Syntax(StrEnum):
    """The syntax of rules; `auto` is detected by suffix and content."""

    AUTO = "auto"
    EVERMAT = "evermat"
    SOUFFLE = "souffle"
    NEMO = "nemo"
    DLOG = "dlog"
    SPARQL_RL = "sparql-rl"


def says_what_to_read(path: Path, syntax: Syntax) -> bool:
    """Return whether a program must name its files, as those of Soufflé and Nemo do."""
    if syntax is Syntax.AUTO:
        with reading(path):
            syntax = Syntax(recognised(path.name, path.read_text("utf-8", "replace")))
    return syntax in {Syntax.SOUFFLE, Syntax.NEMO}


def read_program(
    path: Path, syntax: Syntax = Syntax.AUTO, *, folders: Sequence[Path] = ()
) -> Program:
    """Read a program, and resolve the paths of its imports.

    Args:
        path: the file.
        syntax: its syntax.
        folders: folders to search for imported files, before the program's own.
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
