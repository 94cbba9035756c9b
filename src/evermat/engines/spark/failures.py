"""Failures for lack of resources: explained, or retried in another way."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, TypeVar

from evermat.errors import EvermatError, gist
from evermat.errors.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Done = TypeVar("Done")

DIED = re.compile(
    r"OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|MemoryError|Cannot allocate memory"
    r"|failed to map segment|ExecutorLostFailure|Connection reset|Python worker exited"
    r"|exit(?:ed| code)\D{0,30}(?:52|137)|Answer from Java side is empty"
    r"|Error while sending or receiving"
)
"""Spark's messages about tasks and processes that ran out of memory, or ended."""
LACKS_PACKAGE = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
"""Spark's messages about workers without a package."""
INSTALL = (
    "install evermat with the same extras for the Python of all workers "
    "(`spark.pyspark.python`), or send an environment along by `--archives`"
)
DISK_IS_FULL = re.compile(r"No space left on device|ENOSPC|[Dd]isk quota exceeded")
FREE_DISK = (
    "free some, or name larger disks: `spark.local.dir` for what Spark shuffles and "
    "spills, `spark.evermat.checkpoints` for checkpoints"
)
DAMAGED = re.compile(r"DamagedParquetError: `([^`]+)`")
"""What tasks say of a file whose bytes are not those that were written."""
_NO_ROOM = re.compile(r"UNABLE_TO_ACQUIRE_MEMORY|SparkOutOfMemoryError")


class SparkStepError(EvermatError, RuntimeError):
    """A step that failed on Spark."""

    code: ClassVar[str] = "EM805"


def message_of(error: Exception) -> str:
    """Return the message of an error, even if the JVM has ended."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  whatever is left of the connection
        return "Answer from Java side is empty"


@contextmanager
def plain_failures() -> Iterator[None]:
    """Add advice to errors of Spark for lack of resources."""
    try:
        yield
    except EvermatError:
        raise
    except Exception as error:
        text = message_of(error)
        if lacking := LACKS_PACKAGE.search(text):
            raise SparkStepError(
                f"a worker lacks the package `{lacking[1]}`", help=INSTALL
            ) from without_secrets(error)
        if DISK_IS_FULL.search(text):
            raise SparkStepError(
                f"a disk is full: {gist(text)}", help=FREE_DISK
            ) from without_secrets(error)
        if damaged := DAMAGED.search(text):
            raise SparkStepError(
                f"a file of the state is damaged: `{damaged[1]}`",
                help="`evermat store verify` says which versions are whole",
            ) from without_secrets(error)
        if not DIED.search(text):
            raise
        raise SparkStepError(
            f"an executor ran out of memory or died: {gist(text)}",
            help="give executors more memory (`spark.executor.memory`; in a local "
            "session `spark.driver.memory`), and a new session if Java has ended",
        ) from without_secrets(error)


def with_room(sql: str, run: Callable[[str], Done]) -> Done:
    """Run a plan; retry it without hash tables if there was no memory for one of them.

    The number of rows is sometimes an estimate, and the memory used by other tasks and
    caches is not known in advance.
    """
    try:
        return run(sql)
    except Exception as error:
        if "SHUFFLE_HASH" not in sql or not _NO_ROOM.search(message_of(error)):
            raise
    return run(sql.replace("SHUFFLE_HASH", "MERGE"))
