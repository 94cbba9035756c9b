"""Measurements in processes of their own, with a time limit.

A fresh process makes the peak of memory mean something and keeps one measurement from
warming or slowing another. The parent stays small and only waits.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Record = dict[str, Any]
"""What a measurement says, as JSON has it."""


class Status(StrEnum):
    """How a measurement ended."""

    DONE = "done"
    TIME_LIMIT = "time limit"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Measured:
    """The records of a measurement up to its end, whatever the end was."""

    status: Status
    records: tuple[Record, ...]
    message: str = ""

    def of(self, event: str) -> list[Record]:
        """The records of one sort."""
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


def reason_in(errors: str) -> str:
    """Why a process failed: the deepest cause of Java's, or else the last error."""
    lines = [line for line in errors.splitlines() if line[:1].strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [""])[-1]


def script_seconds(script: str, *, time_limit: float) -> float | None:
    """How long a new interpreter takes for a script, from start to end."""
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
    # A killed process may leave half a line behind.
    lines = [line for line in output.splitlines() if line.endswith("}")]
    return tuple(json.loads(line) for line in lines)
