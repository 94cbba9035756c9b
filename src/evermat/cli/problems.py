"""What went wrong, as data: for `--json`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from evermat.errors import EvermatError, ProgramError

if TYPE_CHECKING:
    from collections.abc import Sequence


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for a JSON document."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def problem_document(problem: EvermatError) -> dict[str, object]:
    """What is wrong, where, and what to do about it."""
    span = problem.span
    return {
        "code": problem.code,
        "message": problem.message,
        "file": None if span is None else span.source.name,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "reason": problem.law,
        "help": problem.help,
    }


def print_error(error: BaseException, message: str, exit_code: int) -> None:
    """Print the document of a command that failed.

    Args:
        error: the error; some are not ours, and have no code.
        message: what is wrong, in a line.
        exit_code: how the command ends.
    """
    document: dict[str, object] = {"code": None, "message": message}
    if isinstance(error, EvermatError):
        document = problem_document(error)
    if isinstance(error, ProgramError):
        document["problems"] = [problem_document(each) for each in error.problems]
    notes = [note.removeprefix(" = ") for note in getattr(error, "__notes__", ())]
    if notes:
        document["notes"] = notes
    document["exit_code"] = exit_code
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps({"error": document}, indent=indent, ensure_ascii=False))  # noqa: T201
