"""Errors about states on a lake."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError, gist
from evermat.errors.redaction import without_secrets
from evermat.results.result import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Iterator


# ------------------------------------------------------------------------- the library

try:
    import deltalake
except ImportError as error:
    raise MissingPackageError(
        f"states and stores need `{error.name or 'deltalake'}`, which is not installed",
        help='install it with pip install "evermat[lake]"',
    ) from error

__all__ = ["deltalake"]


# ------------------------------------------------------------------------------ errors


class StateError(EvermatError, OSError):
    """A state on a lake cannot be read or written.

    Attributes:
        step: the operation that failed.
        cause: the cause of the failure.
    """

    code: ClassVar[str] = "EM741"

    def __init__(self, step: str, cause: str, *, help: str = "") -> None:  # noqa: A002  as everywhere
        self.step = step
        self.cause = cause
        super().__init__(f"cannot {step}: {cause}", help=help)


def no_state(place: str | Path) -> StateError:
    """Return the error for a place without a state where one is needed."""
    return StateError(
        f"open `{place}`",
        "there is no state",
        help="check the place; `KnowledgeBase(rules, state=…)` and "
        "`evermat run --store …` make a state",
    )


def require_folder(place: str | Path) -> None:
    """Refuse a place that is a file."""
    if Path(str(place)).is_file():
        raise StateError(
            f"open the state at `{place}`",
            "it is a file, and a state is a folder",
            help="name another place",
        )


class StateConflictError(EvermatError, RuntimeError):
    """Another process has changed the state since it was opened."""

    code: ClassVar[str] = "EM742"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"another writer has changed the state at `{place}`",
            reason="a state has one writer at a time; nothing of this update was kept",
            help="open the state again and repeat the update",
        )


class ReadOnlyStateError(EvermatError, PermissionError):
    """An attempt to change an earlier version of a state."""

    code: ClassVar[str] = "EM743"

    def __init__(self, version: int) -> None:
        super().__init__(
            f"version {version} is not the latest one, and cannot be changed",
            reason="versions of a state never change",
            help="open the state without a version to go on from the latest one",
        )


class MissingVersionError(EvermatError, LookupError):
    """A version of a state that does not exist, or no longer."""

    code: ClassVar[str] = "EM744"


class BatchError(EvermatError, ValueError):
    """A batch number that cannot be recorded."""

    code: ClassVar[str] = "EM745"


class StateSettingsError(EvermatError, ValueError):
    """The settings of a state differ from the requested ones."""

    code: ClassVar[str] = "EM746"


class DamagedStateError(StateError):
    """A file of a state differs from what was written, or is missing.

    Attributes:
        file: relative to the state.
    """

    code: ClassVar[str] = "EM747"

    def __init__(self, file: str, place: str, reason: str) -> None:
        self.file = file
        super().__init__(f"read `{file}` of the state at `{place}`", reason)


class ForeignCommitError(StateError):
    """Another program has committed to the table of a state.

    Attributes:
        version: the version of the commit.
        file: the entry of the log, relative to the state.
    """

    code: ClassVar[str] = "EM748"

    def __init__(self, version: int, file: str, place: str, commit: str) -> None:
        self.version = version
        self.file = file
        super().__init__(
            f"open the state at `{place}`",
            f"Evermat did not make version {version}, says `{file}`: {commit}",
        )
        self.reason = (
            "a state has facts with all that follows, so Evermat alone writes it"
        )


class RestoringError(EvermatError, ValueError):
    """A version of a state cannot be restored."""

    code: ClassVar[str] = "EM749"


@contextmanager
def step(name: str) -> Iterator[None]:
    """Convert errors in the block to ones that name the step, except Evermat's own."""
    try:
        yield
    except EvermatError:
        raise
    except FileNotFoundError as error:
        raise StateError(
            name,
            f"the file `{error}` is missing",
            help="it was vacuumed or removed; open a version that is still whole",
        ) from without_secrets(error)
    except Exception as error:  # noqa: BLE001  converted to an error of Evermat
        raise StateError(
            name,
            gist(str(error) or type(error).__name__),
            help="check the place, the rights and the storage options",
        ) from without_secrets(error)
