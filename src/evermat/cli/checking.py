"""`evermat check` and `evermat fmt`."""

from __future__ import annotations

import sys
from collections import Counter
from enum import Enum, auto
from typing import TYPE_CHECKING, TypedDict

from evermat.cli.problems import problem_document
from evermat.cli.programs import Syntax, read_program
from evermat.errors import EvermatError
from evermat.kb.rule_inputs import reading
from evermat.lang.checks import check_program
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evermat.cli.output import Output
    from evermat.lang.syntax import Program


_SHOWN = 10
"""How many problems of one sort are shown."""


def check_files(
    paths: Sequence[Path], syntax: Syntax, output: Output, *, is_strict: bool
) -> bool:
    """Report all problems of all files; whether there are none that count."""
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
    """Print problems, but not hundreds of the same sort."""
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
    """The modules that take rules of a program, each with its rules as text."""
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
    """Format files; False if a check finds one that would change."""
    from evermat.lang.formatter import format_source

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
