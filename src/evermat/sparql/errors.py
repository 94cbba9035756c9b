"""What can be wrong with a query or an update in SPARQL."""

from __future__ import annotations

from typing import ClassVar

from evermat.errors import EvermatError, Label, ParseError, Source, Span


class SparqlSyntaxError(ParseError):
    """A text that is neither a query nor an update of SPARQL 1.1."""

    code: ClassVar[str] = "EM108"


class UnsupportedSparqlError(EvermatError, ValueError):
    """A part of SPARQL that is not supported."""

    code: ClassVar[str] = "EM515"

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what} is not supported in SPARQL here", help=advice)


def syntax_error(text: str, problem: Exception) -> SparqlSyntaxError:
    """The error for what the parser found, with its place."""
    # The parser's own errors know the offset; others only have a message.
    start = getattr(problem, "loc", None)
    message = getattr(problem, "msg", None) or str(problem)
    labels: tuple[Label, ...] = ()
    if isinstance(start, int):
        end = min(start + 1, len(text))
        labels = (Label(Span(Source("<sparql>", text), min(start, end), end)),)
    return SparqlSyntaxError(
        f"this is not SPARQL 1.1: {message}",
        labels=labels,
        help="check the text at this place",
    )
