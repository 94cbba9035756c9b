"""The base of all errors, which states where, why and what to do.

An error has fields (code, labels, reason, help); the text is composed only here, so
every message has the same form:

    UnsafeRuleError [EM201]: head variable `?z` is not bound by the body
     --> family.dl:4:15
      |
    4 | related(?x, ?y, ?z) :- parent(?x, ?y).
      |                 ^^ needs a value here
      |
      = reason: every variable must occur in a positive body atom
      = help: add a positive atom that mentions `?z`
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from evermat.errors.redaction import redacted


@dataclass(frozen=True)
class Source:
    """A text with a recognisable name: a file name, or `<rules>`."""

    name: str
    text: str

    @cached_property
    def line_ends(self) -> list[int]:
        """The offsets of the line ends: a report may refer to thousands of places."""
        return [found.start() for found in re.finditer("\n", self.text)]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a source text, from offset `start` up to but excluding `end`."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """Line number of the start, from 1."""
        return bisect_left(self.source.line_ends, self.start) + 1

    @property
    def column(self) -> int:
        """Column number of the start, from 1."""
        return self.start - self.source.text.rfind("\n", 0, self.start)

    @property
    def line_text(self) -> str:
        """The whole line on which the span starts, tabs shown as single blanks."""
        text = self.source.text
        begin = text.rfind("\n", 0, self.start) + 1
        end = text.find("\n", self.start)
        line = text[begin:] if end < 0 else text[begin:end]
        return line.replace("\t", " ").rstrip("\r")


@dataclass(frozen=True, slots=True)
class Label:
    """A place with a short remark on its role in the error."""

    span: Span
    text: str = ""


class EvermatError(Exception):
    """Base of every error that Evermat raises on purpose.

    Attributes:
        code: stable identifier, listed in `docs/errors.md`.
        message: the problem, in one line.
        labels: the places involved, the most relevant one first.
        reason: the rule of the language or the system that was broken.
        help: advice on what to do.
    """

    code: ClassVar[str] = "EM000"

    def __init__(
        self,
        message: str,
        *,
        labels: tuple[Label, ...] = (),
        reason: str | None = None,
        help: str | None = None,  # noqa: A002  the label that users see
    ) -> None:
        self.message = redacted(message)
        self.labels = labels
        self.reason = reason
        self.help = None if help is None else redacted(help)
        super().__init__(self.message)

    @property
    def span(self) -> Span | None:
        """The main place, if the error has one."""
        return self.labels[0].span if self.labels else None

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """Return the full text: message, places, reason and help."""
        lines = [f"{type(self).__name__} [{self.code}]: {self.message}"]
        lines += map(redacted, _render_labels(self.labels))
        notes = [("reason", self.reason), ("help", self.help)]
        indent = " " * _gutter(self.labels) if self.labels else ""
        lines += [f"{indent} = {word}: {text}" for word, text in notes if text]
        return "\n".join(lines)


def _gutter(labels: tuple[Label, ...]) -> int:
    return max(len(str(label.span.line)) for label in labels)


def _render_labels(labels: tuple[Label, ...]) -> list[str]:
    if not labels:
        return []
    width = _gutter(labels)
    blank = " " * width
    main = labels[0].span
    lines = [f"{blank}--> {main.source.name}:{main.line}:{main.column}", f"{blank} |"]
    shown: tuple[Source, int] | None = None
    window = _Window("", 1)
    for label in _in_reading_order(labels):
        span = label.span
        here = (span.source, span.line)
        if here != shown:
            if shown is not None and span.source != shown[0]:
                lines.append(f"{blank}::: {span.source.name}:{span.line}:{span.column}")
            window = _Window(span.line_text, span.column)
            lines.append(f"{span.line:>{width}} | {window.text}".rstrip())
            shown = here
        pad, carets = window.underline(span)
        lines.append(f"{blank} | {pad}{carets} {label.text}".rstrip())
    lines.append(f"{blank} |")
    return lines


MAXIMUM_WIDTH = 110
"""The most columns of a source line shown; longer lines are cut around a place."""


class _Window:
    """The part of a source line that is shown, and its offset."""

    def __init__(self, line: str, column: int) -> None:
        self.start = 0
        self.text = line
        if len(line) > MAXIMUM_WIDTH:
            self.start = max(0, min(column - 30, len(line) - MAXIMUM_WIDTH))
            end = self.start + MAXIMUM_WIDTH
            before = "..." if self.start else ""
            after = "..." if end < len(line) else ""
            piece = line[self.start + len(before) : end - len(after)]
            self.text = before + piece + after

    def underline(self, span: Span) -> tuple[str, str]:
        """Return the blanks before the carets of a span, and the carets."""
        offset = min(max(0, span.column - 1 - self.start), len(self.text))
        room = max(1, len(self.text) - offset)
        return " " * offset, "^" * max(1, min(span.end - span.start, room))


def _in_reading_order(labels: tuple[Label, ...]) -> list[Label]:
    main = labels[0].span.source

    def key(label: Label) -> tuple[bool, str, int]:
        span = label.span
        # Programs that are not files may share a name: all are called `<rules>`.
        return (span.source != main, span.source.name, span.start)

    return sorted(labels, key=key)


# ------------------------------------------------------------- errors in programs

MAXIMUM_SHOWN = 10
"""The most problems of a program shown before "and N more"."""

LONGEST_GIST = 240
"""The most characters of another library's message that are shown."""


class ProgramError(EvermatError, ValueError):
    """An invalid program.

    A program may have several problems. The first one is raised; its `others` are the
    rest, and its text contains all of them.
    """

    code: ClassVar[str] = "EM200"
    others: tuple[ProgramError, ...] = ()

    @property
    def problems(self) -> tuple[ProgramError, ...]:
        """All problems, in the order of the text, syntax errors first."""
        return (self, *self.others)

    def __str__(self) -> str:
        shown = [problem.render() for problem in self.problems[:MAXIMUM_SHOWN]]
        more = len(self.problems) - MAXIMUM_SHOWN
        if more > 0:
            shown.append(f"and {more} more")
        return "\n\n".join(shown)


def raise_all(problems: list[ProgramError]) -> None:
    """Raise the first of the problems, if any, with the others attached."""
    if problems:
        first, *others = problems
        first.others = tuple(others)
        raise first


class ParseError(ProgramError, SyntaxError):
    """A text that is not a program."""

    code = "EM101"

    def __init__(
        self,
        message: str,
        *,
        labels: tuple[Label, ...] = (),
        reason: str | None = None,
        help: str | None = None,  # noqa: A002  the label that users see
    ) -> None:
        super().__init__(message, labels=labels, reason=reason, help=help)
        if labels:
            span = labels[0].span
            self.filename = span.source.name
            self.lineno, self.offset = span.line, span.column

    @property
    def msg(self) -> str:  # type: ignore[override]
        """The whole text, which Python shows for an uncaught syntax error."""
        return str(self).removeprefix(f"{type(self).__name__} ")


class UnknownPrefixError(ParseError):
    """A prefixed name whose prefix was not declared."""

    code = "EM102"


class IncludeError(ParseError):
    """A file to be included cannot be read."""

    code = "EM103"


class ReservedNameError(ParseError):
    """A name that is reserved by the language."""

    code = "EM104"


class UnsafeRuleError(ProgramError):
    """A variable that is not bound."""

    code = "EM201"


class ArityError(ProgramError):
    """A predicate used with different numbers of arguments."""

    code = "EM202"


class UnknownFunctionError(ProgramError):
    """A call of a function that does not exist."""

    code = "EM203"


class BodyLengthError(ProgramError):
    """A rule or a query with too many parts for nested loops."""

    code: ClassVar[str] = "EM206"


class ArgumentCountError(ProgramError):
    """A function called with too few or too many arguments."""

    code = "EM204"


class DeclarationError(ProgramError):
    """A declaration with a type that does not exist, or that contradicts another."""

    code = "EM205"


class StratificationError(ProgramError):
    """A predicate that depends on its own negation."""

    code = "EM301"


class TypeMismatchError(ProgramError, TypeError):
    """A value of one type where another type is needed."""

    code = "EM401"


class ConstantExpressionError(ProgramError, ArithmeticError):
    """An expression without variables that has no value, such as `1 / 0`."""

    code = "EM404"


class ProgramWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """A part of a program that is allowed, but probably not intended."""

    code = "EM900"


class UndefinedPredicateWarning(ProgramWarning):
    """A predicate without rules, facts and a declaration."""

    code = "EM901"


class UnusedPredicateWarning(ProgramWarning):
    """A declared predicate that the program never uses."""

    code = "EM902"


class SingletonVariableWarning(ProgramWarning):
    """A variable that occurs only once."""

    code = "EM903"


class DuplicateRuleWarning(ProgramWarning):
    """A rule that is equivalent to an earlier one."""

    code = "EM904"


class ConstantConditionWarning(ProgramWarning):
    """A condition that is always true or never true."""

    code = "EM905"


class ForgottenVariableWarning(ProgramWarning):
    """A word in a rule that is a string, but looks like a variable.

    Attributes:
        words: the words.
    """

    code = "EM908"

    def __init__(
        self,
        message: str,
        *,
        labels: tuple[Label, ...] = (),
        reason: str | None = None,
        help: str | None = None,  # noqa: A002  the label that users see
        words: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, labels=labels, reason=reason, help=help)
        self.words = words


class KindMismatchWarning(ProgramWarning):
    """A join or a constant that never matches: an integer with a string."""

    code: ClassVar[str] = "EM910"


class NumberMismatchWarning(KindMismatchWarning):
    """A join or a constant that never matches: `2` with `2.0`."""

    code = "EM911"


def gist(text: str) -> str:
    """Return the most informative line of another library's long message."""
    if "Python worker" in text or "Traceback" in text:
        raised = re.findall(
            r"^(?:[\w.]+Error|[\w.]+Exception): .+$", text, re.MULTILINE
        )
        if raised:
            return _short(raised[-1])
    text = _COLOUR.sub("", text)
    message = re.search("<Message>(.+?)</Message>", text)
    if message:
        # An object store that uses the S3 protocol rejected the request.
        return _short(message[1])
    # The innermost cause, the exception that Java passed to Python, or its last words.
    causes = re.findall(
        r"^(?:Caused by: |: |\s*↳ |Exception in thread \"main\" )(?:[\w.$]+: )?(.+)$",
        text,
        re.MULTILINE,
    )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = causes[-1] if causes else next(iter(lines), "no reason was given")
    return _short(chosen)


_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_GIST else f"{text[:LONGEST_GIST]}…"
