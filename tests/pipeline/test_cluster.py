"""Pipelines on a real cluster: a standalone master with two workers on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines import PROGRAM, embedded_copy, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PROJECT = Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "pipeline"
SECONDS = 120.0
PATIENCE = 600.0
"""Seconds after which a pipeline is not believed to end."""


@dataclass(frozen=True)
class Cluster:
    master: str
    home: Path
    environment: dict[str, str]

    def submit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(self.home / "bin" / "spark-submit"),
            "--master", self.master,
            "--conf", "spark.ui.enabled=false",
            "--conf", "spark.executor.memory=512m",
            "--conf", "spark.log.level=FATAL",
            str(EXAMPLE / "submit.py"), "pipeline",
        ]  # fmt: skip
        return self._run([*command, *arguments])

    def evermat(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, str(EXAMPLE / "submit.py"), *arguments])

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pyspark = pytest.importorskip("pyspark")
    home = Path(str(pyspark.__file__)).parent
    folder = tmp_path_factory.mktemp("cluster")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT / "src"),
    }
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    start = "org.apache.spark.deploy."
    commands = [
        [f"{start}master.Master", "--port", str(port)],
        *[[f"{start}worker.Worker", "--cores", "1", "--memory", "600m", master]] * 2,
    ]
    processes = []
    try:
        for at, command in enumerate(commands):
            log = folder / f"log-{at}"
            processes.append(_started(home, command, log, environment))
            _wait_for(log, "New state: ALIVE" if at == 0 else "Successfully registered")
        yield Cluster(master, home, environment)
    finally:
        for process in processes[::-1]:
            process.terminate()
            process.wait()


def _started(
    home: Path, command: list[str], log: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    with log.open("w") as sink:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command, *place],
            env=environment,
            stdout=sink,
            stderr=sink,
        )


def _wait_for(log: Path, word: str) -> None:
    end = time.monotonic() + SECONDS
    while word not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < end, log.read_text(encoding="utf-8")
        time.sleep(0.2)


def test_submitted_pipelines_run_on_two_workers(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("out"))
    done = cluster.submit("run", str(folder / "pipeline.toml"))
    assert done.returncode == 0, done.stderr
    # The master of spark-submit counts, whatever the configuration says.
    assert f"on {cluster.master}" in done.stdout + done.stderr
    expected = embedded_copy(folder, tmp_path / "embedded")
    for name in ("hazard", "needs", "changes"):
        assert rows(folder / "out" / name) == rows(expected / "out" / name)


def test_an_executor_without_memory_is_told_of(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "edge.csv").write_text("x,y\na,b\n", encoding="utf-8")
    (tmp_path / "pipeline.toml").write_text(
        f'{PROGRAM}\n[[source]]\npredicate = "edge"\npath = "edge.csv"\n'
        f'[engine]\nmaster = "{cluster.master}"\n[engine.conf]\n'
        '"spark.executor.memory" = "512m"\n"spark.executor.pyspark.memory" = "16m"\n'
        '"spark.task.maxFailures" = "1"\n[state]\npath = "state"\n',
        encoding="utf-8",
    )
    done = cluster.evermat("pipeline", "run", str(tmp_path / "pipeline.toml"))
    assert done.returncode == 1
    assert (
        "SparkStepError [EM805]: an executor ran out of memory or died" in done.stderr
    )
    assert "= step: read source edge" in done.stderr
    assert not (tmp_path / "state").exists()
