"""What users may hand over as rules: text, files, objects, or lists of these."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.lang.parser import parse_program
from evermat.lang.syntax import Program, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

RuleInput = str | Path | Program | Rule
"""Text in the language, the path of a file, a program, or a single rule."""


class RuleInputError(EvermatError, TypeError):
    """Something that is neither rules nor where to find them."""

    code: ClassVar[str] = "EM551"


class RuleFileError(EvermatError, OSError):
    """A file of rules that cannot be read."""

    code: ClassVar[str] = "EM552"


_FILE_NAME = re.compile(r"[^\s:?(\[]+\.(dl|rls|evm|datalog|txt)", re.IGNORECASE)
"""No blank, bracket or question mark, and a suffix that files of rules have."""


def read_rules(
    rules: RuleInput | Iterable[RuleInput] | None,
    *,
    prefixes: Mapping[str, str] | None = None,
) -> Program:
    """One program from all that was given.

    Args:
        rules: strings are text, never file names; `Path` objects are files.
        prefixes: names that texts may use without declaring them.

    Raises:
        RuleInputError: something of another type, or a text that is a file name.
        RuleFileError: a file that cannot be read.
    """
    together = Program()
    for part in listed(rules):
        # A later text may use the prefixes of those before it.
        known = dict(prefixes or {}) | dict(together.prefixes)
        together = together + _read_one(part, known)
    return together


def listed(rules: RuleInput | Iterable[RuleInput] | None) -> list[RuleInput]:
    """What was given, as a list."""
    if rules is None:
        return []
    if isinstance(rules, str | Path | Program | Rule):
        return [rules]
    if not isinstance(rules, Iterable):
        raise _wrong_type(rules)
    return list(rules)


def read_rule_file(path: Path) -> str:
    """The text of a file of rules."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RuleFileError(
            f"`{path}` is not UTF-8 text: {error.reason} at byte {error.start}",
            help="save the file in UTF-8",
        ) from error
    except OSError as error:
        raise RuleFileError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}",
            help="check the path",
        ) from error


def _read_one(rules: object, prefixes: Mapping[str, str]) -> Program:
    match rules:
        case Program():
            return rules
        case Rule():
            return Program(rules=(rules,))
        case Path():
            return _read_file(rules, prefixes)
        case str():
            _refuse_file_name(rules)
            return parse_program(rules, prefixes=prefixes)
    raise _wrong_type(rules)


def _wrong_type(rules: object) -> RuleInputError:
    return RuleInputError(
        f"rules cannot be given as `{type(rules).__name__}`: {rules!r}",
        help="give text, a pathlib.Path, a Program, a Rule, or a list of these",
    )


def _read_file(path: Path, prefixes: Mapping[str, str]) -> Program:
    text = read_rule_file(path)
    return parse_program(text, name=str(path), folder=path.parent, prefixes=prefixes)


def _refuse_file_name(text: str) -> None:
    name = text.strip()
    if _FILE_NAME.fullmatch(name):
        raise RuleInputError(
            f"the text of the rules is `{name}`, which looks like a file name",
            help=f"to read a file, write Path({name!r})",
        )
