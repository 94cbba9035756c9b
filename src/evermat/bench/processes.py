"""Measurements in separate processes, with a time limit.

A fresh process makes the peak of memory meaningful and prevents one measurement from
warming up or slowing down another. The parent stays small and only waits.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


Record = dict[str, Any]
"""A record of a measurement, as JSON."""


class Status(StrEnum):
    """How a measurement ended."""

    DONE = "done"
    TIME_LIMIT = "time limit"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Measured:
    """The records of a measurement until its end, and how it ended."""

    status: Status
    records: tuple[Record, ...]
    message: str = ""

    def of(self, event: str) -> list[Record]:
        """Return the records of one event."""
        return [record for record in self.records if record["event"] == event]


def measure(task: Mapping[str, object], *, time_limit: float) -> Measured:
    """Run one task of `evermat.bench.tasks` in a new process."""
    with subprocess.Popen(
        [sys.executable, "-m", "evermat.bench.tasks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = process.communicate(json.dumps(task), timeout=time_limit)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            return Measured(Status.TIME_LIMIT, _records(output))
        except BaseException:
            process.kill()
            raise
    records = _records(output)
    if process.returncode == 0:
        refusals = [record for record in records if record["event"] == "refused"]
        if refusals:
            return Measured(Status.REFUSED, records, refusals[0]["message"])
        return Measured(Status.DONE, records)
    reason = reason_in(errors) or f"exit code {process.returncode}"
    return Measured(Status.FAILED, records, reason)


@dataclass(frozen=True, slots=True)
class Job:
    """A command that was run from start to end.

    Attributes:
        cpu: the processor time of its process and all descendants, in seconds.
        seconds: the elapsed time.
        reason: why it failed, if it did.
    """

    cpu: float
    seconds: float
    reason: str = ""


def run_job(command: Sequence[str], *, time_limit: float) -> Job:
    """Run a command, and wait for all processes that it leaves behind.

    Java and its workers may end after the Python process that has started them.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    with subprocess.Popen(  # noqa: S603  our own commands
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=time_limit)
            reason = "" if process.returncode == 0 else reason_in(errors) or "it failed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            reason = f"stopped after {time_limit:g} s"
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Job(cpu, perf_counter() - begin, reason)


_ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of Linux."""


def reason_in(errors: str) -> str:
    """Return why a process failed: Java's deepest cause, or else the last error."""
    lines = [line for line in errors.splitlines() if line[:1].strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [""])[-1]


def script_seconds(script: str, *, time_limit: float) -> float | None:
    """Return the time of a script in a new interpreter, including start-up."""
    begin = perf_counter()
    try:
        done = subprocess.run(  # noqa: S603  our own script, in our own interpreter
            [sys.executable, "-c", script],
            capture_output=True,
            check=False,
            timeout=time_limit,
        )
    except subprocess.TimeoutExpired:
        return None
    return perf_counter() - begin if done.returncode == 0 else None


def _records(output: str) -> tuple[Record, ...]:
    # A killed process may leave an incomplete line behind.
    lines = [line for line in output.splitlines() if line.endswith("}")]
    return tuple(json.loads(line) for line in lines)


# ------------------------------------------------------------------------------- plans

# Options of measurements, prepared problems, and reporting of progress.


GENERATION_LIMIT = 600.0
"""Time limit in seconds for generating a problem; ten times what any needs."""

WARM_SCALE = 0.002
"""The scale of the tiny problem that warms up a measuring process."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a suite.

    Attributes:
        scale: multiplies the size of every workload.
        repeat: the number of repetitions of each measurement; tables show the median,
            and the minimum for `equality`.
        peers: whether clingo and DuckDB are measured too.
        time_limit: seconds after which a measuring process is stopped.
        only: the workloads to run, all if empty.
    """

    scale: float = 1.0
    repeat: int = 3
    peers: bool = True
    time_limit: float = 300.0
    only: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """Return whether a workload is selected."""
        return not self.only or name in self.only


class GenerationError(RuntimeError):
    """A problem could not be generated."""


@contextmanager
def prepared(workload: str, scale: float) -> Iterator[dict[str, str]]:
    """Generate a problem and its tiny sibling in temporary folders."""
    with TemporaryDirectory(prefix="evermat-bench-") as root:
        folder, warm = str(Path(root, "problem")), str(Path(root, "warm"))
        scales = {folder: scale, warm: min(scale, WARM_SCALE)}
        task = {"task": "generate", "workload": workload, "folders": scales}
        made = measure(task, time_limit=GENERATION_LIMIT)
        if made.status is not Status.DONE:
            raise GenerationError(f"{workload}: {made.message or made.status}")
        yield {"folder": folder, "warm": warm}


def say(text: str) -> None:
    """Report the start or the end of a measurement."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def median(records: list[Record], field: str) -> float | None:
    """Return the median of a field, or None if it was not measured."""
    values = sorted(record[field] for record in records if field in record)
    if not values:
        return None
    middle = len(values) // 2
    if len(values) % 2:
        return float(values[middle])
    return float(values[middle - 1] + values[middle]) / 2


def ending(measured: Measured, time_limit: float) -> str:
    """Return the text of a table's cell for a measurement without a figure."""
    match measured.status:
        case Status.TIME_LIMIT:
            return f"> {time_limit:.0f} s"
        case Status.REFUSED:
            return "n/a"
        case Status.FAILED:
            return "failed"
        case Status.DONE:
            return "–"
