"""Limits on input: far beyond real data, and low enough to stop an attack.

A file of a few bytes may expand to gigabytes, or be nested so deeply that a parser
crashes. Every reader checks these limits before it allocates or recurses. Each limit
can be raised with an environment variable, which works for the library, the command
line and pipelines alike: `EVERMAT_MAX_COLUMNS=50000`.

The files that a program may name are limited as well: others to include, tables to
import, files to export to. A program may read files beside or below it, and those that
the caller has allowed; another file might contain secrets, and an error message would
show a line of it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError, Label, ParseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_PREFIX = "EVERMAT_MAX_"


@dataclass(frozen=True, slots=True)
class InputLimits:
    """Limits on the size and the depth of input.

    Attributes:
        unpacked_bytes: the unpacked size of one file.
        unpacked_ratio: the unpacked size of a file as a multiple of its size.
            Repetitive tables reach 100, gzip bombs 1,000 and Zstandard bombs far more.
        nesting: the nesting depth of brackets in JSON and TOML, of RDF triples and of
            OWL class expressions.
        xml_nesting: the nesting depth of XML elements; a list in RDF/XML may take two
            for each member.
        columns: the columns of a file, and the arguments of a predicate.
        rules: the rules in the text of a program.
        program_facts: the facts in the text of a program, not in files of facts.
        rules_per_axiom: the rules for one axiom; an intersection of unions has one for
            each choice.
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
"""Bytes that any file may unpack to: they are harmless, whatever the ratio."""

ALWAYS_WRITTEN = 512 << 20
"""Bytes that any table may take when strings stored once are expanded per row.

Millions of rows with one class or property take few bytes in a file, so the ratio is
less meaningful here.
"""


def input_limits() -> InputLimits:
    """Return the current limits: the defaults, or those of the environment.

    Raises:
        LimitSettingError: an environment variable is not a number.
    """
    # Checking them one by one costs more than reading a small file.
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
    """Return the environment variable of a limit.

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
    """Input that exceeds a limit.

    Attributes:
        limit: the name of the limit, a field of `InputLimits`.
    """

    code: ClassVar[str] = "EM735"

    def __init__(
        self, message: str, limit: str, *, labels: tuple[Label, ...] = ()
    ) -> None:
        self.limit = limit
        super().__init__(
            message, labels=labels, reason=_law(limit), help=_advice(limit)
        )


class UnpackedSizeError(InputLimitError):
    """A file that unpacks, or expands, to far more than its size."""

    code = "EM736"


class NestingError(InputLimitError):
    """Input that is nested too deeply."""

    code = "EM737"


class WidthError(InputLimitError):
    """A table with too many columns."""

    code = "EM738"


class AxiomSizeError(InputLimitError):
    """An axiom of an ontology that is equivalent to too many rules."""

    code = "EM739"


class LimitSettingError(EvermatError, ValueError):
    """A limit whose setting is not a positive number."""

    code: ClassVar[str] = "EM740"

    def __init__(self, variable: str, text: str) -> None:
        super().__init__(
            f"{variable} is `{text}`, which is not a positive number",
            help="write digits, as in 50000, or unset it",
        )


class ProgramSizeError(ParseError):
    """A program with more rules, facts or arguments than allowed."""

    code = "EM105"

    def __init__(
        self, message: str, limit: str, *, labels: tuple[Label, ...] = ()
    ) -> None:
        super().__init__(
            message, labels=labels, reason=_law(limit), help=_advice(limit)
        )


def is_moderate(packed: int, unpacked: int, always: int = ALWAYS_ALLOWED) -> bool:
    """Return whether `packed` bytes may unpack to `unpacked` bytes."""
    if unpacked <= always:
        return True
    limits = input_limits()
    most = min(limits.unpacked_bytes, packed * limits.unpacked_ratio)
    return unpacked <= most


def require_unpacked(
    name: str, packed: int, unpacked: int, always: int = ALWAYS_ALLOWED
) -> None:
    """Reject a file that has unpacked to more than allowed.

    Args:
        name: the name of the file in messages.
        packed: the number of its bytes read so far.
        unpacked: the number of bytes they have unpacked to.
        always: the number of bytes allowed whatever the ratio.

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


# ------------------------------------------------------------------------ allowed paths


_ALLOWED: ContextVar[tuple[Path, ...] | None] = ContextVar(
    "evermat_allowed", default=()
)
"""Allowed paths besides the folder of a program; None if no path is allowed."""


class PathNotAllowedError(ParseError):
    """A file that a program names but may not read or write."""

    code = "EM106"


@contextmanager
def allowing(paths: Iterable[str | Path]) -> Iterator[None]:
    """Allow programs to name files at or below these paths, in a `with` block."""
    allowed = _ALLOWED.get()
    more = None if allowed is None else (*allowed, *map(Path, paths))
    token = _ALLOWED.set(more)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


@contextmanager
def allowing_none() -> Iterator[None]:
    """Forbid programs to name any files, in a `with` block."""
    token = _ALLOWED.set(None)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def is_allowed(path: Path, root: Path) -> bool:
    """Return whether a path leads below a folder, or to an allowed path.

    Links and `..` are resolved, so that they lead nowhere else.
    """
    allowed = _ALLOWED.get()
    if allowed is None:
        return False
    try:
        real = path.resolve()
        places = [place.resolve() for place in (root, *allowed)]
    except (OSError, ValueError, RuntimeError):  # links in a circle; a zero byte
        return False
    return any(real.is_relative_to(place) for place in places)


def require_allowed(path: Path, root: Path, labels: tuple[Label, ...] = ()) -> None:
    """Reject a path that a program may not name.

    Args:
        path: the path of the file, which need not exist.
        root: the folder of the program, or that for its outputs.
        labels: the places where the program names it.

    Raises:
        PathNotAllowedError: it is elsewhere.
    """
    if _ALLOWED.get() is None:
        raise PathNotAllowedError(
            "rules that come from elsewhere cannot name files",
            labels=labels,
            reason="a program reads no files of the machine that serves others",
            help="send what the file holds",
        )
    if not is_allowed(path, root):
        shown = str(path).replace("\0", "\\0")
        raise PathNotAllowedError(
            f"`{shown}` is neither in nor below `{root}`",
            labels=labels,
            reason="a program names files beside or below it, or in places that the "
            "caller allows",
            help=f"to allow it, give --allow-path {Path(shown).parent}, or "
            "`allow_paths=` in Python",
        )
