"""Finds a place for reliable checkpoints that the driver and all workers can access.

A configured place is used, if workers can access it. Otherwise it is beside the state,
in the default file system of the cluster, or in the driver's temporary folder, the
first of them that workers can access: each of these may be a local disk.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
from pyarrow.fs import FileSystem

from evermat.engines.spark.failures import plain_failures
from evermat.engines.spark.tasks import map_in_tasks
from evermat.errors import EvermatError, gist
from evermat.errors.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SETTING = "spark.evermat.checkpoints"
STATE = "spark.evermat.state"
"""Set by Evermat, on its own session, to the place of the state."""
_IN_DEFAULT = ".evermat-checkpoints"
"""Relative to the user's home in the default file system of the cluster."""
_HELD = 0.05
"""Seconds that a task waits, so that others are scheduled on other workers."""


class CheckpointPlaceError(EvermatError, RuntimeError):
    """There is no place for checkpoints that all workers can access."""

    code: ClassVar[str] = "EM614"

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            reason="losing a worker must not lose facts, so checkpoints are where all "
            "workers see them",
            help=f"name a folder that driver and workers share: `{SETTING}`, or "
            "`spark.checkpoint.dir`, as a path on a shared disk or a URI such as "
            "hdfs://…; a [state] there will do, too",
        )


def require_place(session: SparkSession, *, is_local: bool) -> str:
    """Return the place for checkpoints, which is determined on first use.

    Args:
        session: a session of Evermat.
        is_local: whether there are no workers besides the driver.

    Raises:
        CheckpointPlaceError: there is none.
    """
    context = session.sparkContext
    known = context.getCheckpointDir()
    mine = session.conf.get(_FOUND, None)
    if known is not None and (is_local or known == mine):
        return str(known)
    if known is not None:
        _require_seen(session, known)
    else:
        _find(session, is_local=is_local)
    found = str(context.getCheckpointDir())
    session.conf.set(_FOUND, found)
    return found


_FOUND = "spark.evermat.checkpoints.found"


def _find(session: SparkSession, *, is_local: bool) -> None:
    """Set the place to the first candidate that workers can access."""
    context = session.sparkContext
    named = session.conf.get(SETTING, None) or os.environ.get(
        "EVERMAT_SPARK_CHECKPOINTS"
    )
    if named is not None:
        _set(context, named, is_ours=False)
        if not is_local:
            _require_seen(session, str(context.getCheckpointDir()))
        return
    if is_local:
        _set(context, tempfile.mkdtemp(prefix="evermat-checkpoints-"))
        return
    state = session.conf.get(STATE, None)
    temporary = f"{tempfile.gettempdir()}/evermat-checkpoints-{uuid4()}"
    beside = [] if state is None else [f"{state}/_checkpoints"]
    for place in (*beside, _IN_DEFAULT, temporary):
        # Spark may lack a client for the storage of the state.
        with suppress(CheckpointPlaceError):
            _set(context, place)
            found = str(context.getCheckpointDir())
            if place == _IN_DEFAULT and _on_disk(found) is not None:
                _remove(found, is_ours=True)  # the cluster has no file system
                continue
            _require_seen(session, found)
            return
    raise CheckpointPlaceError("no place for checkpoints is seen by all workers")


def _set(context: SparkContext, place: str, *, is_ours: bool = True) -> None:
    try:
        context.setCheckpointDir(place)
    except Exception as error:  # noqa: BLE001  raised as one of ours
        raise CheckpointPlaceError(
            f"Spark cannot make checkpoints at `{place}`: {gist(str(error))}"
        ) from without_secrets(error)
    # Spark creates its own folder in it.
    atexit.register(_remove, str(context.getCheckpointDir()), is_ours=is_ours)


def _remove(uri: str, *, is_ours: bool) -> None:
    """Remove checkpoints at exit, and the folder created for them."""
    with suppress(Exception):  # errors can no longer be reported
        if (folder := _on_disk(uri)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            if is_ours:
                folder.parent.rmdir()
        else:
            system, path = FileSystem.from_uri(uri)
            system.delete_dir(path)


def _on_disk(uri: str) -> Path | None:
    """Return the folder of a place on a local disk, or None."""
    address = urlsplit(uri)
    return Path(unquote(address.path)) if address.scheme in {"", "file"} else None


def _require_seen(session: SparkSession, uri: str) -> None:
    """Reject a folder on a disk that workers cannot access.

    Raises:
        CheckpointPlaceError: a worker cannot access it.
    """
    folder = _on_disk(uri)
    if folder is None:
        return
    sign = folder / f"seen-{uuid4()}"
    try:
        sign.touch()
        tasks = max(8, 2 * session.sparkContext.defaultParallelism)
        numbers = session.range(0, tasks, 1, tasks)
        with plain_failures():
            seen = map_in_tasks(numbers, partial(_look, str(sign)), "seen boolean")
            is_seen = all(row["seen"] for row in seen.collect())
    except OSError as error:
        raise CheckpointPlaceError(f"cannot write to `{folder}`: {error}") from error
    finally:
        sign.unlink(missing_ok=True)
    if not is_seen:
        with suppress(OSError):
            folder.rmdir()
        raise CheckpointPlaceError(
            f"workers do not see the place for checkpoints, `{folder}`"
        )


def _look(sign: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(_HELD)
    is_seen = Path(sign).exists()
    for batch in batches:
        seen = pa.array([is_seen] * batch.num_rows, pa.bool_())
        yield pa.RecordBatch.from_arrays([seen], names=["seen"])
