"""Spark for a pipeline: starts a session, and converts Spark's errors."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.engines.spark.failures import (
    DIED,
    DISK_IS_FULL,
    FREE_DISK,
    INSTALL,
    LACKS_PACKAGE,
    SparkStepError,
    message_of,
)
from evermat.engines.spark.session import (
    LOCAL_SETTINGS,
    SparkSetupError,
    missing_part,
    require_classic,
)
from evermat.errors import EvermatError, gist
from evermat.errors.redaction import without_secrets
from evermat.pipeline.errors import OutputError, SourceError
from evermat.rdf import RdfSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from evermat.pipeline.config import EngineSettings

DEFAULT_MASTER = "local[*]"
_ADDRESS = re.compile(r"spark://([^:,/]+):(\d+)")
_SECONDS = 5.0
_STDERR = 2


@contextmanager
def spark_session(settings: EngineSettings, name: str) -> Iterator[SparkSession]:
    """Yield the caller's session if there is one, or a temporary new one.

    A session that `spark-submit` prepares keeps the master and the settings given
    there.

    Raises:
        SparkSetupError: PySpark or Java is missing, or the master does not answer.
    """
    missing = missing_part()
    if missing is not None:
        raise SparkSetupError("Spark cannot start", help=missing)
    with warnings.catch_warnings():
        # PySpark warns of new versions of pandas, which is not used here.
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support")
        from pyspark.sql import SparkSession  # noqa: PLC0415  slow, and optional

        active = SparkSession.getActiveSession()
        session = active or _start(settings, name)
        require_classic(session)
        try:
            yield session
        finally:
            if active is None:
                session.stop()


def has_session() -> bool:
    """Whether there is a session already, or `spark-submit` prepares one."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession  # noqa: PLC0415  it is there

    return SparkSession.getActiveSession() is not None


def _start(settings: EngineSettings, name: str) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.appName(f"evermat {name}")
    master = settings.master or os.environ.get("EVERMAT_SPARK_MASTER", DEFAULT_MASTER)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        wanted = _not_submitted(dict(settings.conf))
        master = "the master of spark-submit"
    else:
        _require_answer(master)
        builder = builder.master(master)
        wanted = {**_usual_settings(), **dict(settings.conf)}
    for key, value in wanted.items():
        builder = builder.config(key, value)
    with _aside() as said:
        try:
            return builder.getOrCreate()
        except Exception as error:  # noqa: BLE001  raised as one of ours
            reason = gist(f"{error}\n{said()}")
            raise SparkSetupError(
                f"Spark did not start on `{master}`: {reason}",
                help="check `master` and `conf` of [engine], and Java (17 or newer)",
            ) from without_secrets(error)


@contextmanager
def _aside() -> Iterator[Callable[[], str]]:
    """Capture Java's output while it starts, and show it only if that fails.

    Java continues to write to the captured file, so that a run is not interrupted by
    its remarks on modules and logging.
    """
    with tempfile.TemporaryFile() as said:
        sys.stderr.flush()
        before = os.dup(_STDERR)
        os.dup2(said.fileno(), _STDERR)

        def read() -> str:
            said.seek(0)
            return said.read().decode("utf-8", "replace")

        try:
            yield read
        finally:
            os.dup2(before, _STDERR)
            os.close(before)


def _usual_settings() -> dict[str, str]:
    # Workers run the same Python, and Spark's log is kept short.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    log = Path(__file__).with_name("quiet_log4j2.properties")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={log}")
    warehouse = Path(tempfile.gettempdir()) / "evermat-warehouse"
    return {**LOCAL_SETTINGS, "spark.sql.warehouse.dir": str(warehouse)}


def _not_submitted(settings: dict[str, str]) -> dict[str, str]:
    """Return the settings that were not given to `spark-submit`."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()  # noqa: SLF001  else the conf is empty
    given = SparkConf()
    return {key: value for key, value in settings.items() if not given.contains(key)}


def _require_answer(master: str) -> None:
    """Check that a standalone master answers; Spark itself would try for a minute."""
    addresses = _ADDRESS.findall(master)
    for host, port in addresses:
        try:
            with socket.create_connection((host, int(port)), timeout=_SECONDS):
                return
        except OSError:
            continue
    if addresses:
        raise SparkSetupError(
            f"no Spark master answers at `{master}`",
            help="check `master` of [engine], and that the cluster is up",
        )


# --------------------------------------------------------------------------- errors


@contextmanager
def plain_spark_errors() -> Iterator[None]:
    """Convert errors of Spark to errors with a description and advice."""
    try:
        yield
    except EvermatError:
        raise
    except Exception as error:
        if not _is_from_spark(error):
            raise
        raise explained(message_of(error)) from without_secrets(error)


def _is_from_spark(error: Exception) -> bool:
    return any(
        kind.__module__.split(".")[0] in {"py4j", "pyspark"}
        for kind in type(error).__mro__
    )


def lacks_client(text: str) -> bool:
    """Return whether Spark reported that it has no client for a kind of place."""
    return re.search(_NO_CLIENT, text) is not None


def explained(text: str) -> EvermatError:
    """Return the error for a message of Spark."""
    ours = re.search(r"(\w+) \[(EM\d+)\]: (.*)$", text, re.MULTILINE)
    if ours is not None:
        advice = re.search(r"^\s+= help: (.*)$", text, re.MULTILINE)
        kind = _OURS.get(ours[2], SparkStepError)
        return kind(ours[3], help=None if advice is None else advice[1])
    for sign in _SIGNS:
        if re.search(sign.pattern, text):
            file = re.search(r"while reading file (\S+?)\.?(?:\s|$)", text)
            which = "" if file is None else f" (`{file[1]}`)"
            message = f"{sign.message}{which}: {gist(text)}"
            return sign.kind(message, help=sign.advice)
    return SparkStepError(f"Spark could not do this: {gist(text)}")


_OURS: dict[str, type[EvermatError]] = {
    SourceError.code: SourceError,
    RdfSyntaxError.code: RdfSyntaxError,
}


@dataclass(frozen=True, slots=True)
class _Sign:
    """A pattern in messages of Spark, and the error for it."""

    pattern: str
    kind: type[EvermatError]
    message: str
    advice: str


_NO_CLIENT = (
    r"No FileSystem for scheme|UNSUPPORTED_FILE_SYSTEM|Class \S+FileSystem not found"
)
GIVE_CLIENT = (
    "give Spark the library of Hadoop for it in [engine.conf]: for s3:// that is "
    '"spark.jars.packages" = "org.apache.hadoop:hadoop-aws:VERSION", of the version of '
    'Spark\'s Hadoop, and "spark.hadoop.fs.s3.impl" = '
    '"org.apache.hadoop.fs.s3a.S3AFileSystem"'
)
"""Advice if Spark has no client for a kind of place."""

_SIGNS = (
    _Sign(LACKS_PACKAGE.pattern, SparkStepError, "a worker lacks a package", INSTALL),
    _Sign(DISK_IS_FULL.pattern, SparkStepError, "a disk is full", FREE_DISK),
    _Sign(
        _NO_CLIENT,
        SparkStepError,
        "Spark has no client for this sort of place",
        GIVE_CLIENT,
    ),
    _Sign(
        DIED.pattern,
        SparkStepError,
        "an executor ran out of memory or died",
        "give executors more memory (`spark.executor.memory`, and "
        "`spark.executor.memoryOverhead` for Python) in [engine.conf], or more and "
        "smaller partitions",
    ),
    _Sign(
        r"CANNOT_READ_FILE|is not a Parquet file|FAILED_READ_FILE|ParquetDecoding",
        SourceError,
        "a file cannot be read",
        "the file is damaged or incomplete; write it again, or leave it out",
    ),
    _Sign(
        r"TABLE_OR_VIEW_NOT_FOUND",
        SourceError,
        "there is no such table",
        "check `table`, and that the catalogue of this session knows it",
    ),
    _Sign(
        r"LOCATION_ALREADY_EXISTS",
        OutputError,
        "there is a table that the catalogue of this session does not know",
        "have a catalogue that lasts, in [engine.conf]: "
        '"spark.sql.catalogImplementation" = "hive", and "spark.sql.warehouse.dir" in '
        "a place of your own",
    ),
    _Sign(
        r"FAILED_JDBC|SQL\w*Exception|SQLSyntaxError|ClassNotFound|No suitable driver"
        r"|ConnectException",
        SourceError,
        "the database cannot be read",
        "check `url`, user and password, and that the driver is among "
        "`spark.jars` or `spark.jars.packages` of [engine.conf]",
    ),
    _Sign(
        r"PATH_NOT_FOUND|FileNotFoundException|UnknownHostException",
        SourceError,
        "nothing is there",
        "check `path`, and that every worker sees the same files",
    ),
    _Sign(
        r"SparkContext was shut down|stopped SparkContext|Connection refused"
        r"|All masters are unresponsive",
        SparkStepError,
        "the connection to Spark was lost",
        "check that the cluster is up, and `master` of [engine]",
    ),
)
