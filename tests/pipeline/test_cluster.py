"""Pipelines on a real cluster: a standalone master with two workers on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines import PROGRAM, embedded_copy, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    with two_workers(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def separate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Workers that do not see the driver's folder for temporary files."""
    folder = tmp_path_factory.mktemp("separate")
    private = folder / "private"
    private.mkdir()
    own = f'mount -t tmpfs none {private} && exec "$0" "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", own]
    if shutil.which("unshare") is None or subprocess.call([*prefix, "true"]):
        pytest.skip("mounting needs rights that this user has not")
    with two_workers(folder, prefix) as started:
        yield replace(
            started, environment={**started.environment, "TMPDIR": str(private)}
        )


@contextmanager
def two_workers(folder: Path, prefix: Sequence[str] = ()) -> Iterator[Cluster]:
    """A cluster; the commands of its workers come after a prefix."""
    pyspark = pytest.importorskip("pyspark")
    home = Path(str(pyspark.__file__)).parent
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
    start, spark_class = "org.apache.spark.deploy.", str(home / "bin" / "spark-class")
    worker = [*prefix, spark_class, f"{start}worker.Worker", master]
    worker += ["--cores", "1", "--memory", "600m"]
    commands = [
        [spark_class, f"{start}master.Master", "--port", str(port)],
        *[worker] * 2,
    ]
    processes = []
    try:
        for at, command in enumerate(commands):
            log = folder / f"log-{at}"
            processes.append(_started(command, log, environment))
            _wait_for(log, "New state: ALIVE" if at == 0 else "Successfully registered")
        yield Cluster(master, home, environment)
    finally:
        for process in processes[::-1]:
            process.terminate()
            process.wait()


def _started(
    command: list[str], log: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    with log.open("w") as sink:
        return subprocess.Popen(
            [*command, *place],
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
        '"spark.executor.memory" = "512m"\n"spark.executor.pyspark.memory" = "64m"\n'
        '"spark.task.maxFailures" = "1"\n"spark.evermat.small" = 0\n'
        '[state]\npath = "state"\n',
        encoding="utf-8",
    )
    done = cluster.evermat("pipeline", "run", str(tmp_path / "pipeline.toml"))
    assert done.returncode == 1
    assert (
        "SparkStepError [EM805]: an executor ran out of memory or died" in done.stderr
    )
    assert "= step: read source edge" in done.stderr
    assert not (tmp_path / "state").exists()


CHAIN = "x,y\n" + "\n".join(f"{at},{at + 1}" for at in range(60)) + "\n"


def closed(
    cluster: Cluster, folder: Path, *parts: str
) -> subprocess.CompletedProcess[str]:
    """Close a chain with next to no facts on the driver."""
    (folder / "edge.csv").write_text(CHAIN, encoding="utf-8")
    (folder / "pipeline.toml").write_text(
        f'{PROGRAM}\n[[source]]\npredicate = "edge"\npath = "edge.csv"\n'
        f'[engine]\nmaster = "{cluster.master}"\nplace = "distributed"\n'
        '[engine.conf]\n"spark.executor.memory" = "512m"\n"spark.evermat.small" = 9\n'
        + "\n".join(parts),
        encoding="utf-8",
    )
    return cluster.evermat("pipeline", "run", str(folder / "pipeline.toml"))


OUTPUT = '[[output]]\npredicate = "reach"\npath = "out"\n'


def test_checkpoints_are_beside_the_state_where_disks_are_separate(
    separate: Cluster, tmp_path: Path
) -> None:
    done = closed(separate, tmp_path, '[state]\npath = "state"\n', OUTPUT)
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "out")) == 60 * 61 // 2
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [
        "_delta_log",
        *sorted(f"part={name}" for name in ("facts", "program", "terms")),
    ]


def test_a_place_that_workers_do_not_see_is_refused(
    separate: Cluster, tmp_path: Path
) -> None:
    done = closed(separate, tmp_path, OUTPUT)
    assert done.returncode == 1
    assert "CheckpointPlaceError [EM614]: no place for checkpoints" in done.stderr
    assert "help: name a folder that driver and workers share" in done.stderr
    private = separate.environment["TMPDIR"]
    named = f'"spark.checkpoint.dir" = "{private}/checkpoints"\n'
    done = closed(separate, tmp_path, named, OUTPUT)
    assert "workers do not see the place for checkpoints" in done.stderr
    named = f'"spark.evermat.checkpoints" = "{tmp_path}/shared"\n'
    done = closed(separate, tmp_path, named, OUTPUT)
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "out")) == 60 * 61 // 2
    assert not list((tmp_path / "shared").iterdir())
