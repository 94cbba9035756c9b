"""Starting Spark: what is missing or wrong is said at once, and plainly."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.engines import make_engine
from evermat.engines.spark.failures import SparkStepError
from evermat.engines.spark.session import SessionToCome, SparkSetupError, missing_part
from evermat.pipeline import spark_session as starting
from evermat.pipeline.config import EngineSettings
from evermat.pipeline.errors import OutputError, SourceError
from evermat.pipeline.spark_session import explained, spark_session
from evermat.rdf import RdfSyntaxError
from pipelines import PROGRAM, configured, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from evermat.errors import EvermatError

SOURCE = """
[[source]]
predicate = "edge"
format = "spark"
reader = "csv"
path = "edge.csv"
[state]
path = "state"
"""


def test_missing_java_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    (tmp_path / "edge.csv").write_text("x,y\na,b\n")
    with pytest.raises(SparkSetupError, match="Spark cannot start") as raised:
        run(configured(tmp_path, PROGRAM, SOURCE, engine="spark"))
    assert "Java 17" in str(raised.value.help)
    assert raised.value.__notes__ == [" = step: start Spark"]
    assert not (tmp_path / "state").exists()


def test_a_home_without_java_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    assert f"JAVA_HOME is `{tmp_path}`, without Java" in str(missing_part())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").touch()
    assert missing_part() is None


def test_missing_pyspark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with (
        pytest.raises(SparkSetupError) as raised,
        spark_session(EngineSettings(), "test"),
    ):
        pass
    assert 'pip install "evermat[spark]"' in str(raised.value.help)


def test_a_master_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(starting, "missing_part", lambda: None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    # A session that another test left behind would be taken as it is.
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    settings = EngineSettings(master="spark://127.0.0.1:1")
    with (
        pytest.raises(SparkSetupError, match=r"no Spark master answers at") as raised,
        spark_session(settings, "test"),
    ):
        pass
    assert "that the cluster is up" in str(raised.value.help)


@pytest.fixture
def connected() -> SparkSession:
    """What a session of Spark Connect is told by: where its class is defined."""
    place = {"__module__": "pyspark.sql.connect.session"}
    session: SparkSession = type("SparkSession", (), place)()
    return session


@pytest.mark.parametrize("more", [{}, {"driver_facts": 0}])
def test_spark_connect_is_refused_with_advice(
    connected: SparkSession, more: dict[str, int]
) -> None:
    with pytest.raises(SparkSetupError, match="Spark Connect") as raised:
        make_engine("spark", session=connected, **more)
    assert "spark-submit" in str(raised.value.help)
    with pytest.raises(SparkSetupError, match="Spark Connect"):
        KnowledgeBase("p(1) .", engine="spark", spark=connected)


def test_an_active_session_of_spark_connect_is_refused(
    connected: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(starting, "missing_part", lambda: None)
    monkeypatch.setattr("evermat.engines.spark.session.missing_part", lambda: None)
    active = "pyspark.sql.SparkSession.getActiveSession"
    monkeypatch.setattr(active, lambda: connected)
    with pytest.raises(SparkSetupError, match="Spark Connect"):
        make_engine("spark")
    with (
        pytest.raises(SparkSetupError, match="Spark Connect"),
        spark_session(EngineSettings(), "test"),
    ):
        pass
    later = SessionToCome(lambda: connected, {})
    engine = make_engine("spark", session=later, driver_facts=0)
    with pytest.raises(SparkSetupError, match="Spark Connect"):
        _ = engine.cluster.session  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (
            (
                "Job aborted: ExecutorLostFailure (executor 1 exited): Command "
                "exited with code 137"
            ),
            SparkStepError,
            "spark.executor.memory",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", SparkStepError, "memory"),
        ("java.net.SocketException: Connection reset", SparkStepError, "memory"),
        (
            "x\nCaused by: java.sql.SQLException: No suitable driver",
            SourceError,
            "No suitable driver",
        ),
        (
            "[FAILED_JDBC.CONNECTION] Failed JDBC jdbc:derby:*** on the operation",
            SourceError,
            "check `url`, user and password",
        ),
        (
            (
                "An error occurred while calling o41.load.\n"
                ": java.lang.ClassNotFoundException: org.postgresql.Driver\n\tat x"
            ),
            SourceError,
            "cannot be read: org.postgresql.Driver",
        ),
        (
            (
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
                "file:///data/a.parquet.  SQLSTATE: KD001\n"
                "Caused by: java.io.IOException: FAILED_TO_UNCOMPRESS(5)"
            ),
            SourceError,
            "(`file:///data/a.parquet`): FAILED_TO_UNCOMPRESS",
        ),
        (
            (
                "[JAVA_GATEWAY_EXITED] Java gateway process exited\n"
                'Exception in thread "main" org.apache.spark.SparkException: Could '
                "not parse Master URL: 'cloud'\n\tat x"
            ),
            SparkStepError,
            "Could not parse Master URL: 'cloud'",
        ),
        (
            "[CANNOT_READ_FILE_FOOTER] Could not read footer for file: a.parquet",
            SourceError,
            "a.parquet",
        ),
        (
            (
                "An exception was thrown from the Python worker:\nTraceback\n"
                "evermat.rdf.reading.RdfSyntaxError: RdfSyntaxError [EM723]: "
                "`a.ttl`: no\n = help: say so"
            ),
            RdfSyntaxError,
            "say so",
        ),
        ("Traceback\n  File\nKeyError: 'x'", SparkStepError, "KeyError: 'x'"),
        (
            "[LOCATION_ALREADY_EXISTS] Cannot name the managed table as `a`",
            OutputError,
            "spark.sql.catalogImplementation",
        ),
        ("SparkContext was shut down", SparkStepError, "the cluster is up"),
        ("something else", SparkStepError, "something else"),
    ],
)
def test_what_spark_says_is_explained(
    text: str, kind: type[EvermatError], words: str
) -> None:
    error = explained(text)
    assert type(error) is kind
    assert words in str(error)


@pytest.mark.spark
@pytest.mark.slow
def test_a_master_that_makes_no_sense(tmp_path: Path) -> None:
    """In a process of its own: a session that is active already would be used."""
    (tmp_path / "edge.csv").write_text("x,y\na,b\n")
    engine = '[engine]\nmaster = "cloud"\n'
    config = configured(tmp_path, PROGRAM, SOURCE, engine, engine="spark")
    command = [sys.executable, "-m", "evermat", "pipeline", "run", str(config.file)]
    # Few rows would need no plan of Spark, and start none.
    settings = {**os.environ, "EVERMAT_SPARK_SMALL": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=settings
    )
    assert done.returncode == 1
    assert "did not start on `cloud`" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "state").exists()
