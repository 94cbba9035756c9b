"""Errors of requests, as answers: a status, a code and advice."""

from __future__ import annotations

from typing import ClassVar

from evermat.errors import EvermatError, ProgramError
from evermat.kb.transaction import OutOfMemoryError, TornError
from evermat.lang.catalogue import UnknownPredicateError


class ServerError(EvermatError):
    """A request that cannot be answered.

    Attributes:
        status: the HTTP status of the answer.
    """

    code: ClassVar[str] = "EM950"
    status: ClassVar[int] = 400


class BadRequestError(ServerError):
    """A request whose parameters or body do not have the expected form."""

    code: ClassVar[str] = "EM951"


class UnknownTokenError(ServerError):
    """A request without a token, or with an unknown one."""

    code: ClassVar[str] = "EM952"
    status: ClassVar[int] = 401


class ForbiddenError(ServerError):
    """A request that its token, host or origin does not allow."""

    code: ClassVar[str] = "EM953"
    status: ClassVar[int] = 403


class NotThereError(ServerError):
    """A path, version or method that does not exist."""

    code: ClassVar[str] = "EM954"
    status: ClassVar[int] = 404


class BodyTooLargeError(ServerError):
    """A body with more bytes than the server accepts."""

    code: ClassVar[str] = "EM955"
    status: ClassVar[int] = 413


class MediaTypeError(ServerError):
    """A body in a format that the server does not read."""

    code: ClassVar[str] = "EM956"
    status: ClassVar[int] = 415


class BodyContentError(ServerError):
    """A body with facts that cannot be read."""

    code: ClassVar[str] = "EM962"
    status: ClassVar[int] = 422

    def __init__(self, error: EvermatError, text: str) -> None:
        self.text = text
        message = text.partition("\n")[0].partition("]: ")[2]
        super().__init__(message, reason=error.reason, help=error.help)

    def render(self) -> str:
        """Return the text of the error raised while reading the body."""
        return self.text


class NotAcceptableError(ServerError):
    """An answer requested in a format that the server does not write."""

    code: ClassVar[str] = "EM957"
    status: ClassVar[int] = 406


class BusyError(ServerError):
    """A request whose time limit passed while it waited for its turn."""

    code: ClassVar[str] = "EM958"
    status: ClassVar[int] = 503


class VersionConflictError(ServerError):
    """An update for a version of the facts that is not the current one."""

    code: ClassVar[str] = "EM959"
    status: ClassVar[int] = 409


class ForgottenVersionError(ServerError):
    """A version whose changes the server no longer has."""

    code: ClassVar[str] = "EM960"
    status: ClassVar[int] = 410


class ClientGoneError(ServerError):
    """The client has closed the connection, so the answer is not needed."""

    code: ClassVar[str] = "EM963"
    status: ClassVar[int] = 499


class ServerSetupError(EvermatError):
    """A server that cannot be started with these settings."""

    code: ClassVar[str] = "EM961"


def status_of(error: EvermatError) -> int:
    """Return the HTTP status of the answer for an error."""
    match error:
        case ServerError():
            return error.status
        case UnknownPredicateError():
            return 404
        case OutOfMemoryError() | TornError():
            return 503
    return 422


def document_of(error: EvermatError) -> dict[str, object]:
    """Return an error as data."""
    document: dict[str, object] = {**_document(error), "text": str(error)}
    if isinstance(error, ProgramError):
        document["problems"] = [_document(each) for each in error.problems]
    return {"error": document}


def _document(error: EvermatError) -> dict[str, object]:
    span = error.span
    return {
        "code": error.code,
        "message": error.message,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "reason": error.reason,
        "help": error.help,
    }
