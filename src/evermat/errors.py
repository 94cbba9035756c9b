"""Errors that say where, which law was broken and what to do.

An error carries fields (code, labels, law, help); the text is built here and nowhere
else, so that every message of the system has the same form:

    UnsafeRuleError [EM201]: head variable `?z` is not bound by the body
     --> family.dl:4:15
      |
    4 | related(?x, ?y, ?z) :- parent(?x, ?y).
      |                 ^^ needs a value here
      |
      = rule: every variable must occur in a positive body atom
      = help: add a positive atom that mentions `?z`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Source:
    """A text with a name that people recognise: a file name, or `<rules>`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a source text, from offset `start` up to and without `end`."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """Line number of the start, from 1."""
        return self.source.text.count("\n", 0, self.start) + 1

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
    """A place with a short remark on what it has to do with the error."""

    span: Span
    text: str = ""


class EvermatError(Exception):
    """Base of every error that Evermat raises on purpose.

    Attributes:
        code: stable identifier, listed in `docs/errors.md`.
        message: what is wrong, in one line.
        labels: the places involved, the most telling one first.
        law: the rule of the language or the system that was broken.
        help: what to do about it.
    """

    code: ClassVar[str] = "EM000"

    def __init__(
        self,
        message: str,
        *,
        labels: tuple[Label, ...] = (),
        law: str | None = None,
        help: str | None = None,  # noqa: A002  the word that users see
    ) -> None:
        self.message = message
        self.labels = labels
        self.law = law
        self.help = help
        super().__init__(message)

    @property
    def span(self) -> Span | None:
        """The main place, if the error has one."""
        return self.labels[0].span if self.labels else None

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """The full text: what, where, law, help."""
        lines = [f"{type(self).__name__} [{self.code}]: {self.message}"]
        lines += _render_labels(self.labels)
        notes = [("rule", self.law), ("help", self.help)]
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
    shown: tuple[str, int] | None = None
    for label in _in_reading_order(labels):
        span = label.span
        here = (span.source.name, span.line)
        if here != shown:
            if shown is not None and span.source.name != shown[0]:
                lines.append(f"{blank}::: {span.source.name}:{span.line}:{span.column}")
            lines.append(f"{span.line:>{width}} | {span.line_text}".rstrip())
            shown = here
        room = max(1, len(span.line_text) - span.column + 1)
        carets = "^" * max(1, min(span.end - span.start, room))
        pad = " " * (span.column - 1)
        lines.append(f"{blank} | {pad}{carets} {label.text}".rstrip())
    lines.append(f"{blank} |")
    return lines


def _in_reading_order(labels: tuple[Label, ...]) -> list[Label]:
    main = labels[0].span.source.name

    def key(label: Label) -> tuple[bool, str, int]:
        span = label.span
        return (span.source.name != main, span.source.name, span.start)

    return sorted(labels, key=key)
