"""A fixpoint on a cluster of several processes, one of which is killed on the way.

`python losing_executors.py` prints the answer; it is a process of its own,
because a process has one Spark context, and this one has a cluster for itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

import evermat
from evermat.engines.spark.engine import SparkEngine

MASTER = "local-cluster[2,1,1024]"
EXECUTOR = "CoarseGrainedExecutorBackend"
# Neither column is carried from the body to the head: no task can do it alone.
RULES = """
    same(?x, ?y) :- up(?x, ?z), up(?y, ?z) .
    same(?x, ?y) :- up(?x, ?a), same(?a, ?b), up(?y, ?b) .
"""
DEPTH = 5


def tree() -> list[tuple[int, int]]:
    """A binary tree, from children to parents."""
    return [(node, node // 2) for node in range(2, 2**DEPTH)]


def executors() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [each for each in children if EXECUTOR in _command(each)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended in the meantime
        return ""


class Killer:
    """Kills an executor in the middle of a fixpoint, once."""

    def __init__(self) -> None:
        self.rounds = 0
        self.killed: list[int] = []

    def __call__(self, step: object, /) -> None:
        del step
        self.rounds += 1
        if self.rounds == 2:
            victim = executors()[0]
            os.kill(victim.pid, signal.SIGKILL)
            self.killed.append(victim.pid)


def make_session(folder: str) -> SparkSession:
    source = str(Path(evermat.__file__).parent.parent)
    builder = SparkSession.builder.master(MASTER).appName("losing executors")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.executor.memory": "1g",
        "spark.pyspark.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": source,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setCheckpointDir(f"{folder}/checkpoints")
    return session


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = make_session(folder)
        engine = SparkEngine(session)
        engine.cluster.small = 3
        killer = Killer()
        kb = evermat.KnowledgeBase(RULES, engine=engine, progress=killer)
        before = len(executors())
        kb.insert("up", tree())
        answer = {
            "executors": before,
            "killed": len(killer.killed),
            "rounds": killer.rounds,
            "same": sorted(map(list, kb.counters("same"))),
        }
        session.stop()
    print(json.dumps(answer))  # noqa: T201  what the other side reads


if __name__ == "__main__":
    main()
