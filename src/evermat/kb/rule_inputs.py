"""What users may hand over as rules: text, files, objects, or lists of these.

Files may be in other languages that we read, and may name files of facts (`@import`,
`.input`), which are read along with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.io.files import UnknownFormatError, data_file
from evermat.kb.program_files import load_sources, read_program
from evermat.lang.parser import parse_program
from evermat.lang.syntax import Program, Rule
from evermat.rdf import read_rdf

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from evermat.io import DataFile
    from evermat.kb.program_files import Syntax

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


@dataclass(frozen=True, slots=True)
class RulesRead:
    """A program, and the facts in the files that it names."""

    program: Program
    tables: Mapping[str, list[pa.Table]]


def read_rules(
    rules: Iterable[RuleInput], *, prefixes: Mapping[str, str] | None = None
) -> RulesRead:
    """One program from all that was given.

    Args:
        rules: strings are text, never file names; `Path` objects are files.
        prefixes: names that texts may use without declaring them.

    Raises:
        RuleInputError: something of another type, or a text that is a file name.
        RuleFileError: a file that cannot be read.
    """
    together = Program()
    tables: dict[str, list[pa.Table]] = {}
    for part in rules:
        # A later text may use the prefixes of those before it.
        known = dict(prefixes or {}) | dict(together.prefixes)
        program = _read_one(part, known)
        folder = part.parent if isinstance(part, Path) else Path()
        for name, table in load_sources(program, folder, read_rdf=_read_rdf).items():
            tables.setdefault(name, []).append(table)
        together = together + program
    return RulesRead(together, tables)


def listed(rules: RuleInput | Iterable[RuleInput] | None) -> list[RuleInput]:
    """What was given, as a list."""
    if rules is None:
        return []
    if isinstance(rules, str | Path | Program | Rule):
        return [rules]
    if isinstance(rules, bytes | Mapping) or not isinstance(rules, Iterable):
        raise _wrong_type(rules)
    return list(rules)


def read_rule_file(path: Path, syntax: Syntax = "auto") -> Program:
    """The program in a file.

    Raises:
        RuleFileError: the file cannot be read as text, or holds data.
        ParseError: it is not a program.
    """
    _refuse_data_file(path)
    with reading(path):
        return read_program(path, syntax)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file of rules into our own errors."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise RuleFileError(
            f"`{path}` is not UTF-8 text: {error.reason} at byte {error.start}",
            help="save the file in UTF-8",
        ) from error
    except OSError as error:
        if isinstance(error, EvermatError):
            raise
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
            return read_rule_file(rules)
        case str():
            _refuse_file_name(rules)
            return parse_program(rules, prefixes=prefixes)
    raise _wrong_type(rules)


def _wrong_type(rules: object) -> RuleInputError:
    return RuleInputError(
        f"rules cannot be given as `{type(rules).__name__}`: {rules!r}",
        help="give text, a pathlib.Path, a Program, a Rule, or a list of these",
    )


def _refuse_data_file(path: Path) -> None:
    try:
        file = data_file(path)
    except UnknownFormatError:
        return
    if path.is_file():
        rules = ""
        if file.is_rdf:
            rules = "; `evermat.rdf.read_ontology` and pipelines make rules of axioms"
        raise RuleFileError(
            f"`{path}` is a file of facts, not of rules",
            help=f"give it with `--facts {path}`, or to `load` or `insert`{rules}",
        )


def _read_rdf(file: DataFile) -> pa.Table:
    return read_rdf(file.path, file.format)


def _refuse_file_name(text: str) -> None:
    name = text.strip()
    if _FILE_NAME.fullmatch(name):
        raise RuleInputError(
            f"the text of the rules is `{name}`, which looks like a file name",
            help=f"to read a file, write Path({name!r})",
        )
