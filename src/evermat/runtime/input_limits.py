"""Limits of what is read: far beyond real data, and near enough to stop an attack.

A file of a few bytes may stand for gigabytes, or be nested so deeply that a parser dies
of it. Every reader looks at these limits before it allocates or recurses. Each limit
can be raised with an environment variable, which works for the library, the command
line and pipelines alike: `EVERMAT_MAX_COLUMNS=50000`.

Which files a program may name is limited as well. A program comes from somewhere, and
names files: others to include, tables to import,
files to export to. It may read what is beside or below it, and what the caller has
allowed; another file might hold secrets, and an error message would show a line of it.
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
        super().__init__(
            message, labels=labels, reason=_law(limit), help=_advice(limit)
        )


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
        super().__init__(
            message, labels=labels, reason=_law(limit), help=_advice(limit)
        )


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


# ------------------------------------------------------------------------ allowed paths


_ALLOWED: ContextVar[tuple[Path, ...] | None] = ContextVar(
    "evermat_allowed", default=()
)
"""Besides the folder of a program; None if not even that is allowed."""


class PathNotAllowedError(ParseError):
    """A file that a program names and may not read or write."""

    code = "EM106"


@contextmanager
def allowing(paths: Iterable[str | Path]) -> Iterator[None]:
    """Let programs name files at or below these paths, as long as this lasts."""
    allowed = _ALLOWED.get()
    more = None if allowed is None else (*allowed, *map(Path, paths))
    token = _ALLOWED.set(more)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


@contextmanager
def allowing_none() -> Iterator[None]:
    """Let programs name no files at all, as long as this lasts."""
    token = _ALLOWED.set(None)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def is_allowed(path: Path, root: Path) -> bool:
    """Whether a path leads below a folder, or to what the caller has allowed.

    Links and `..` are followed, so that they lead nowhere else.
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
    """Refuse a path that a program must not name.

    Args:
        path: where the file is, or would be.
        root: the folder of the program, or that for its outputs.
        labels: where the program names it.

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
