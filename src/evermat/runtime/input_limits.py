"""Limits of what is read: far beyond real data, and near enough to stop an attack.

A file of a few bytes may stand for gigabytes, or be nested so deeply that a parser dies
of it. Every reader looks at these limits before it allocates or recurses. Each limit
can be raised with an environment variable, which works for the library, the command
line and pipelines alike: `EVERMAT_MAX_COLUMNS=50000`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import ClassVar

from evermat.errors import EvermatError, Label, ParseError

_PREFIX = "EVERMAT_MAX_"


@dataclass(frozen=True, slots=True)
class InputLimits:
    """How large and how deep input may be.

    Attributes:
        unpacked_bytes: what one file may unpack to.
        unpacked_ratio: how many times its size a file may unpack to. Repetitive tables
            reach 100, bombs of gzip 1,000 and those of Zstandard far more.
        nesting: brackets in JSON and TOML, RDF triples and class expressions of OWL
            within each other.
        xml_nesting: elements of XML within each other; a list in RDF/XML may take two
            for each member.
        columns: of a file, and arguments of a predicate.
        rules: in the text of a program.
        program_facts: facts in the text of a program, not in files of facts.
        rules_per_axiom: an intersection of unions stands for a rule for each choice.
    """

    unpacked_bytes: int = 64 << 30
    unpacked_ratio: int = 400
    nesting: int = 100
    xml_nesting: int = 2_000
    columns: int = 10_000
    rules: int = 250_000
    program_facts: int = 1_000_000
    rules_per_axiom: int = 10_000


_DEFAULTS = InputLimits()

ALWAYS_ALLOWED = 64 << 20
"""Bytes that any file may unpack to: they do no harm, whatever the ratio."""

ALWAYS_WRITTEN = 512 << 20
"""Bytes that any table may have when strings stored once are written out per row.

Millions of rows that name one class or property take some bytes of a file, so that the
ratio says less here.
"""


def input_limits() -> InputLimits:
    """The limits that hold now: the defaults, or what the environment says.

    Raises:
        LimitSettingError: a variable of the environment is not a number.
    """
    # Looking one by one costs more than the reading of a small file.
    if not any(name.startswith(_PREFIX) for name in os.environ):
        return _DEFAULTS
    return InputLimits(**dict(_from_environment()))


def _from_environment() -> list[tuple[str, int]]:
    found = []
    for each in fields(InputLimits):
        text = os.environ.get(variable_of(each.name))
        if text is None:
            continue
        if not (text.isascii() and text.isdecimal() and int(text)):
            raise LimitSettingError(variable_of(each.name), text)
        found.append((each.name, int(text)))
    return found


def variable_of(name: str) -> str:
    """The environment variable of a limit.

    >>> variable_of("columns")
    'EVERMAT_MAX_COLUMNS'
    """
    return f"{_PREFIX}{name.upper()}"


def _law(name: str) -> str:
    holds, usual = getattr(input_limits(), name), getattr(_DEFAULTS, name)
    default = "the default" if holds == usual else f"by default {usual:,}"
    return f"the limit `{name}` is {holds:,}, {default}"


def _advice(name: str) -> str:
    return f"if the input is what it should be, set {variable_of(name)} to raise it"


class InputLimitError(EvermatError, ValueError):
    """Input that goes beyond a limit.

    Attributes:
        limit: the name of the limit, a field of `InputLimits`.
    """

    code: ClassVar[str] = "EM735"

    def __init__(
        self, message: str, limit: str, *, labels: tuple[Label, ...] = ()
    ) -> None:
        self.limit = limit
        super().__init__(message, labels=labels, law=_law(limit), help=_advice(limit))


class UnpackedSizeError(InputLimitError):
    """A file that unpacks, or expands, to far more than it is."""

    code = "EM736"


class NestingError(InputLimitError):
    """Input that is nested too deeply."""

    code = "EM737"


class WidthError(InputLimitError):
    """A table with too many columns."""

    code = "EM738"


class AxiomSizeError(InputLimitError):
    """An axiom of an ontology that stands for too many rules."""

    code = "EM739"


class LimitSettingError(EvermatError, ValueError):
    """A limit that is set to something else than a positive number."""

    code: ClassVar[str] = "EM740"

    def __init__(self, variable: str, text: str) -> None:
        super().__init__(
            f"{variable} is `{text}`, which is not a positive number",
            help="write digits, as in 50000, or unset it",
        )


class ProgramSizeError(ParseError):
    """A program with more rules, facts or arguments than a program may have."""

    code = "EM105"

    def __init__(
        self, message: str, limit: str, *, labels: tuple[Label, ...] = ()
    ) -> None:
        super().__init__(message, labels=labels, law=_law(limit), help=_advice(limit))


def is_moderate(packed: int, unpacked: int, always: int = ALWAYS_ALLOWED) -> bool:
    """Whether `packed` bytes may unpack to `unpacked` bytes."""
    if unpacked <= always:
        return True
    limits = input_limits()
    most = min(limits.unpacked_bytes, packed * limits.unpacked_ratio)
    return unpacked <= most


def require_unpacked(
    name: str, packed: int, unpacked: int, always: int = ALWAYS_ALLOWED
) -> None:
    """Refuse a file that has unpacked to more than it may.

    Args:
        name: what messages call the file.
        packed: how many of its bytes have been read.
        unpacked: how many came out of them.
        always: how many are allowed, whatever the ratio.

    Raises:
        UnpackedSizeError: it has.
    """
    if is_moderate(packed, unpacked, always):
        return
    limits = input_limits()
    if unpacked > limits.unpacked_bytes:
        raise UnpackedSizeError(
            f"`{name}` unpacks to more than {unpacked - 1:,} bytes", "unpacked_bytes"
        )
    raise UnpackedSizeError(
        f"the first {packed:,} bytes of `{name}` unpack to {unpacked:,}",
        "unpacked_ratio",
    )
