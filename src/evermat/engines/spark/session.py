"""Spark sessions: finding Java, starting a local session, and Evermat's settings."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import uuid4

from evermat.engines.spark.checkpoint_place import require_place
from evermat.errors import EvermatError
from evermat.errors.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    # A checkpoint keeps the partitioning of its rows only without adaptive execution.
    # With it, every round would shuffle all facts of a relation again.
    "spark.sql.adaptive.enabled": "false",
    # Sizes are known here and hints are given; Spark would guess.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "false",
    # Spark assumes that caches are huge until they are first read, and runs a job for
    # each side that could filter them.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows from the driver take four times the memory if Spark unpacks them at once, and
    # plans that were checkpointed keep them.
    "spark.sql.execution.arrow.localRelationThreshold": "100KB",
    # Rows from the driver are a task for each batch, and ids take little memory.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Caching would otherwise clone the session with all its views, so the data sent by
    # the driver would stay as long as anything made from them.
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.sql.adaptive.applyFinalStageShuffleOptimizations": "false",
    # Code for recurring plans would be compiled, run once and dropped.
    "spark.sql.codegen.cache.maxEntries": "1000",
}
"""Settings of the engine's session; those of the original session stay."""

FOR_FEW_ROWS = {
    # Compiling a plan takes longer than interpreting it for a few thousand rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A single partition is never shuffled again.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # These plans need no filters inferred by Spark, and no explained plans.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    # Spark assumes that joins multiply rows, and shuffles potentially large results.
    "spark.sql.maxSinglePartitionBytes": str((1 << 63) - 1),
}
"""Settings for plans that read few rows."""

IS_LOCAL = re.compile(r"local(\[.*\])?")
"""Masters without executors of their own: `local-cluster[…]` has some."""

CALL_SITE = {"callSite.short": "evermat", "callSite.long": "evermat"}
"""The call site of a job in Spark's web interface."""

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Failures are raised as errors; Spark need not print them as well.
    "spark.log.level": "FATAL",
    "spark.driver.memory": "4g",
    # Each hash join takes at least a page of its task's memory until the task ends.
    # Plans have many joins, most of few rows; with the default page size, sixteen pages
    # take all of it. Java divides a heap of a gigabyte into regions of a megabyte, and
    # adds 16 bytes to a page: one of a megabyte would take two regions.
    "spark.buffer.pageSize": str((1 << 20) - 16),
    "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
}
"""Settings of a session that is started here."""


class SparkSetupError(EvermatError, RuntimeError):
    """Spark cannot be started."""

    code: ClassVar[str] = "EM605"


@dataclass(frozen=True, slots=True)
class SessionToCome:
    """A session that is started when the first plan needs it.

    Attributes:
        start: gives the session.
        settings: what it will be configured with.
    """

    start: Callable[[], SparkSession]
    settings: Mapping[str, str]


def require_classic(session: SparkSession) -> None:
    """Refuse a session of Spark Connect, whose driver is elsewhere.

    Plans, checkpoints and the sizes of caches are made with Spark's Java objects.

    Raises:
        SparkSetupError: it is one.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SparkSetupError(
            "Evermat does not run on a session of Spark Connect",
            help="pass a classic session: "
            'SparkSession.builder.master("local[*]" or "spark://host:port")'
            ".getOrCreate() without `remote` and SPARK_REMOTE, or run the program "
            "with spark-submit on the cluster",
        )


def is_local(session: SparkSession) -> bool:
    """Whether there are no executors beside the driver of Spark."""
    return IS_LOCAL.fullmatch(str(session.sparkContext.master)) is not None


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once, about."""
    return int(session.sparkContext.defaultParallelism)


def missing_part() -> str | None:
    """Return what has to be installed before Spark can run, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return 'PySpark is not installed: pip install "evermat[spark]"'
    home = os.environ.get("JAVA_HOME")
    if home:
        # With JAVA_HOME, Spark does not search elsewhere.
        is_there = (Path(home) / "bin" / "java").exists()
        advice = "set it to where Java 17 or newer is, or to nothing"
        return None if is_there else f"JAVA_HOME is `{home}`, without Java: {advice}"
    if shutil.which("java") is None:
        return "Java is not installed: Spark 4 needs Java 17 or newer, or JAVA_HOME"
    return None


def find_session() -> SparkSession:
    """Return the active session, or a new one on all cores of this machine.

    The master of a new session is taken from EVERMAT_SPARK_MASTER if it is set.

    Raises:
        SparkSetupError: PySpark or Java is missing, or Spark does not start.
    """
    missing = missing_part()
    if missing is not None:
        raise SparkSetupError("the Spark engine cannot start", help=missing)
    with warnings.catch_warnings():
        # PySpark warns of new versions of pandas, which this engine does not use.
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession  # noqa: PLC0415  slow, and optional

    active = SparkSession.getActiveSession()
    if active is not None:
        require_classic(active)
        return active
    master = os.environ.get("EVERMAT_SPARK_MASTER", "local[*]")
    builder = SparkSession.builder.master(master).appName("evermat")
    # Python workers must have the packages of this Python, whatever the path says.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warehouse = str(Path(tempfile.gettempdir()) / "evermat-warehouse")
    builder = builder.config("spark.sql.warehouse.dir", warehouse)
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  raised as one of ours
        raise SparkSetupError(
            f"Spark did not start on `{master}`: {error}",
            help="check JAVA_HOME (Java 17 or newer) and the master",
        ) from without_secrets(error)


def moved(frame: DataFrame, session: SparkSession) -> DataFrame:
    """Return the same frame in another session of the same application.

    Names of views and settings of plans belong to a session.
    """
    if frame.sparkSession is session:
        return frame
    require_classic(frame.sparkSession)
    require_classic(session)
    view = f"evermat_moved_{next(_numbers)}"
    place = session.conf.get("spark.sql.globalTempDatabase", "global_temp")
    frame.createOrReplaceGlobalTempView(view)
    try:
        return session.table(f"{place}.{view}")
    finally:
        session.catalog.dropGlobalTempView(view)


_numbers = count()


class ForFewRows:
    """Switches a session to the settings for few rows, and back.

    All settings are switched at once: this is done for every plan, and switching them
    one by one takes longer than running the plan.
    """

    def __init__(self, session: SparkSession) -> None:
        inside = cast("Any", session)
        self._settings = inside._jsparkSession.sessionState().conf()  # noqa: SLF001
        usual = {name: session.conf.get(name) for name in FOR_FEW_ROWS}
        self._few, self._usual = (
            _properties(inside._jvm, settings)  # noqa: SLF001
            for settings in (FOR_FEW_ROWS, usual)
        )

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Run plans that read few rows in here."""
        self._settings.setConf(self._few)
        try:
            yield
        finally:
            self._settings.setConf(self._usual)


def _properties(jvm: Any, settings: Mapping[str, str | None]) -> object:  # noqa: ANN401
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.setProperty(name, value)
    return cast("object", properties)


@contextmanager
def called_here(session: SparkSession, doing: str = "") -> Iterator[None]:
    """Set the call site and the description of jobs in a block.

    Otherwise Spark searches the stack for the call site at each step of a plan.

    Args:
        session: runs the plans.
        doing: their purpose, for Spark's web interface.
    """
    context = session.sparkContext
    wanted = {**CALL_SITE, "spark.job.description": f"evermat: {doing}"}
    if not doing:
        del wanted["spark.job.description"]
    before: dict[str, Any] = {name: context.getLocalProperty(name) for name in wanted}
    for name, value in wanted.items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            context.setLocalProperty(name, known)


@contextmanager
def without_constraints(frame: DataFrame) -> Iterator[None]:
    """Make checkpoints of a frame in a block without constraints.

    The constraints of the plan can name columns that the checkpoint lacks, which makes
    Spark fail. The plan itself is made with constraints, because they narrow its scans.
    """
    setting, conf = "spark.sql.constraintPropagation.enabled", frame.sparkSession.conf
    # Asking for the files makes the plan, and runs nothing.
    frame.inputFiles()
    conf.set(setting, "false")
    try:
        yield
    finally:
        conf.unset(setting)


def written_down(frame: DataFrame, *, few: bool = False) -> DataFrame:
    """Checkpoint the current rows of a frame.

    Losing an executor must not lose them. A session without executors keeps them
    locally: there is none to lose, and writing shared files takes several times as
    long.

    Args:
        frame: the frame.
        few: whether its rows may stay in memory, if there are no executors.
    """
    session = frame.sparkSession
    if not is_local(session):
        require_place(session, is_local=False)
        return frame.checkpoint(eager=True)
    from pyspark import StorageLevel  # noqa: PLC0415  slow to load

    level = StorageLevel.MEMORY_AND_DISK if few else StorageLevel.DISK_ONLY
    return frame.localCheckpoint(eager=True, storageLevel=level)


def read_from_cache(frame: DataFrame, rows: int | None) -> DataFrame:
    """Return a cached frame as a scan of the cache.

    Spark looks for cached data when it makes a plan. A checkpoint with a known
    partitioning would then be found once, and scanned from its files if the plan names
    it again. And until a cache is first read, Spark uses the estimate of the plan, in
    which every join multiplies, instead of its size.

    Args:
        frame: the frame.
        rows: its number of rows, if known.
    """
    from pyspark.sql import DataFrame as Frame  # noqa: PLC0415  slow to load

    # PySpark has no public interface for it; its own frames are made like this.
    session, inside = frame.sparkSession, cast("Any", frame.sparkSession)
    cached = cast("Any", frame)._jdf.queryExecution().withCachedData()  # noqa: SLF001
    if rows is not None:
        # Python cannot construct the type of sizes, so they are taken from a range of
        # numbers.
        numbers = session.range(max(rows, 1) * len(frame.columns))
        alike = cast("Any", numbers)._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
        getattr(cached, "statsOfPlanToCache_$eq")(alike.stats())
    dataset = inside._jvm.org.apache.spark.sql.classic.Dataset  # noqa: SLF001
    return Frame(dataset.ofRows(inside._jsparkSession, cached), session)  # noqa: SLF001


def let_go(frame: DataFrame) -> None:
    """Release a frame in Java that Python does not need; its views stay.

    Python would do so at a garbage collection, because Java objects in Python refer to
    themselves. Until then, Java would keep all data that the driver has sent with it.
    """
    gateway = cast("Any", frame.sparkSession.sparkContext)._gateway  # noqa: SLF001
    gateway.detach(cast("Any", frame)._jdf)  # noqa: SLF001


def shared_folder(session: SparkSession) -> str:
    """A folder that the driver and all workers see, for what does not last."""
    return require_place(session, is_local=is_local(session))


def own_session(session: SparkSession) -> SparkSession:
    """Return a session on the same cluster with settings and view names of its own."""
    require_classic(session)
    own = session.newSession()
    for name, value in SETTINGS.items():
        if own.conf.isModifiable(name):
            own.conf.set(name, value)
    context = own.sparkContext
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        # Workers on this machine need the packages that this process has.
        context.pythonExec = sys.executable
    tasks = str(parallelism(own))
    own.conf.set("spark.sql.shuffle.partitions", tasks)
    # Spark takes the same number by itself, and this can be switched back to.
    own.conf.set("spark.sql.leafNodeDefaultParallelism", tasks)
    return own


# ----------------------------------------------------------------------------- in parts

# Many rows to the driver, some at a time: Java never holds all of them.
#
# They are written to files first, of so many rows each, and come file by file. What
# Spark offers for this keeps in Java all that it has brought.

ROWS_AT_ONCE = 1 << 21
"""Rows of ids that are collected at once.

Java has them in memory four times: as a result, packed, sent, and unpacked.
"""
TERMS_AT_ONCE = 1 << 17
"""The same for rows with the texts of constants."""


@contextmanager
def in_files(frame: DataFrame, at_once: int) -> Iterator[DataFrame]:
    """Yield the same rows, read from temporary files with a limited number of rows."""
    session = frame.sparkSession
    folder = f"{shared_folder(session)}/{uuid4()}"
    try:
        frame.write.option("maxRecordsPerFile", at_once).parquet(folder)
        yield session.read.schema(frame.schema).parquet(folder)
    finally:
        _remove(frame, folder)


def parts_of(written: DataFrame) -> Iterator[pa.Table]:
    """The rows of such files, one file after the other."""
    read = written.sparkSession.read.schema(written.schema)
    for file in sorted(written.inputFiles()):
        yield read.parquet(file).toArrow()


def _remove(frame: DataFrame, folder: str) -> None:
    """Remove a folder, wherever it is."""
    inside = cast("Any", frame.sparkSession)
    path = inside._jvm.org.apache.hadoop.fs.Path(folder)  # noqa: SLF001
    settings = inside._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    path.getFileSystem(settings).delete(path, True)  # noqa: FBT003
