"""Errors of pipelines; each names the step in which it occurred."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError, ProgramError
from evermat.errors.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator


class ConfigError(ProgramError):
    """An invalid configuration of a pipeline."""

    code = "EM801"


class SourceError(EvermatError, OSError):
    """A source that cannot be reached or read."""

    code: ClassVar[str] = "EM802"


class SchemaMismatchError(EvermatError, TypeError):
    """A source whose columns differ from those of the configuration."""

    code: ClassVar[str] = "EM803"


class RejectedRowsError(EvermatError, ValueError):
    """More rows of a source are invalid than the configuration allows."""

    code: ClassVar[str] = "EM804"


class OutputError(EvermatError, OSError):
    """An output that cannot be written."""

    code: ClassVar[str] = "EM806"


@contextmanager
def plain_output_errors(place: str, entry: str) -> Iterator[None]:
    """Convert errors of a block to ones that name the output."""
    try:
        yield
    except OSError as error:
        reason = error.message if isinstance(error, SourceError) else str(error)
        raise OutputError(
            f"cannot write `{place}`: {reason}",
            help=f"check `path` of {entry}, and who may write there",
        ) from without_secrets(error)


def require_feed_of(version: int, last: int, place: str) -> None:
    """Check that a feed has no versions that the state lacks.

    Raises:
        OutputError: it has some, so it belongs to another state.
    """
    if last > version:
        raise OutputError(
            f"the change feed at `{place}` has version {last}, which the state has not",
            reason="a change feed tells the versions of one state",
            help="remove the feed if the state was made anew, or give it another place",
        )


class PipelineStateError(EvermatError, RuntimeError):
    """A command needs a state that does not exist, or is not configured."""

    code: ClassVar[str] = "EM807"


STEP_NOTE = " = step: "


@contextmanager
def naming(step: str) -> Iterator[None]:
    """Add the name of a step to errors in it."""
    try:
        yield
    except EvermatError as error:
        if not any(note.startswith(STEP_NOTE) for note in notes(error)):
            error.add_note(f"{STEP_NOTE}{step}")
        raise


def notes(error: BaseException) -> list[str]:
    """Return the notes that were added to an error."""
    return list(getattr(error, "__notes__", ()))
