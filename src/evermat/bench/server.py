"""A server under load: many readers and a writer, with all answers checked.

Every version of the facts has one stamp, in two predicates, beside a graph whose
closure is maintained. Readers query both predicates at once: two stamps in one answer,
or none, are a torn read. The writer confirms its versions; a reader that starts
afterwards and gets an older one has a stale read.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from evermat.bench.report import Table, count_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evermat.bench.processes import Options

NAMES = ("load",)
READERS, SECONDS, NODES = 50, 60.0, 400
"""Readers, and the length of the run, at scale 1; nodes of the graph."""

_RULES = """
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
both(?n, ?m) :- left(?n), right(?m) .
"""


@dataclass(slots=True)
class Figures:
    """The figures.

    Attributes:
        torn, stale, errors: the numbers of wrong answers, and failed requests.
        read_seconds, write_seconds: the sorted times of requests.
        idle_seconds: the times of reads while nothing is written.
    """

    readers: int
    seconds: float
    torn: int = 0
    stale: int = 0
    errors: list[str] = field(default_factory=list)
    read_seconds: list[float] = field(default_factory=list)
    write_seconds: list[float] = field(default_factory=list)
    idle_seconds: list[float] = field(default_factory=list)


class _Client:
    """A connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._line = HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path: str, body: object) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        self._line.request("POST", path, json.dumps(body), headers)
        answer = self._line.getresponse()
        text = answer.read()
        if answer.status != 200:  # noqa: PLR2004
            message = f"{answer.status}: {text[:200]!r}"
            raise OSError(message)
        found: dict[str, Any] = json.loads(text)
        return found


@contextmanager
def _served() -> Iterator[int]:
    """Run a server in a process of its own; yield its port."""
    draw = random.Random(11)
    with TemporaryDirectory() as folder:
        rules = Path(folder, "rules.dl")
        rules.write_text(_RULES, encoding="utf-8")
        rows = [f"n{draw.randrange(at)},n{at}" for at in range(1, NODES)]
        Path(folder, "edge.csv").write_text("\n".join(rows), encoding="utf-8")
        for name in ("left", "right"):
            Path(folder, f"{name}.csv").write_text("0\n", encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "evermat", "serve", str(rules), "--facts"]
        command += [folder, "--port", str(port), "--no-header"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603  our own command
            try:
                _await(port, process)
                yield port
            finally:
                process.terminate()
                process.wait(30)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    end = monotonic() + 120
    while True:
        try:
            _Client(port).post("/api/query", {"query": "left(?n)"})
        except OSError:
            if monotonic() > end or process.poll() is not None:
                raise
            sleep(0.1)
        else:
            return


@dataclass(slots=True)
class _Load:
    """Readers and a writer that know which versions are confirmed."""

    port: int
    figures: Figures
    confirmed: int = 0
    ended: Event = field(default_factory=Event)

    def read(self, times: list[float]) -> None:
        """Send queries until the end, and check every answer."""
        figures, client = self.figures, _Client(self.port)
        body = {"query": "both(?n, ?m), reach('n0', ?x)", "limit": 20}
        while not self.ended.is_set():
            least, start = self.confirmed, monotonic()
            try:
                answer = client.post("/api/query", body)
            except OSError as error:
                figures.errors.append(repr(error))
                return
            times.append(monotonic() - start)
            stamps = {value for row in answer["rows"] for value in row[:2]}
            figures.torn += stamps != {answer["version"]}
            figures.stale += answer["version"] < least

    def write(self) -> None:
        """Write one version after the other until the end."""
        figures, client = self.figures, _Client(self.port)
        number, draw = 0, random.Random(5)
        while not self.ended.is_set():
            number += 1
            edge = [f"n{draw.randrange(1, NODES)}", f"m{draw.randrange(NODES)}"]
            kind = "insert" if number % 2 else "delete"
            stamp = {"left": [[number]], "right": [[number]]}
            start = monotonic()
            try:
                body = {"replace": stamp, kind: {"edge": [edge]}}
                made = client.post("/api/update?show=0", body)
            except OSError as error:
                figures.errors.append(repr(error))
                return
            figures.write_seconds.append(monotonic() - start)
            self.confirmed = made["version"]

    def last(self, seconds: float, work: list[Callable[[], None]]) -> None:
        """Run jobs in parallel for some time."""
        self.ended.clear()
        with ThreadPoolExecutor(len(work)) as pool:
            begun = [pool.submit(each) for each in work]
            sleep(seconds)
            self.ended.set()
        for each in begun:
            each.result()


def run(options: Options) -> Figures:
    """Put a server under load."""
    readers = max(2, round(READERS * min(options.scale, 1.0)))
    figures = Figures(readers, SECONDS * options.scale)
    with _served() as port:
        load = _Load(port, figures)
        load.last(
            figures.seconds / 6, [partial(load.read, figures.idle_seconds)] * readers
        )
        load.last(
            figures.seconds,
            [*[partial(load.read, figures.read_seconds)] * readers, load.write],
        )
    for times in (figures.read_seconds, figures.write_seconds, figures.idle_seconds):
        times.sort()
    return figures


def tables(figures: Figures, options: Options) -> list[Table]:
    """Return the figures as a table."""
    del options
    rows = [
        _row("reads", figures.seconds, figures.read_seconds),
        _row(
            "reads, nothing being written",
            figures.seconds / 6,
            figures.idle_seconds,
        ),
        _row("updates", figures.seconds, figures.write_seconds),
    ]
    wrong = f"{figures.torn} torn reads, {figures.stale} stale ones"
    return [
        Table(
            title=f"{figures.readers} readers and a writer for {figures.seconds:g} s",
            header=("", "number", "per second", "median", "99 of 100 within"),
            rows=tuple(rows),
            notes=(f"{wrong}, {len(figures.errors)} errors.",),
        )
    ]


def _row(
    name: str, seconds: float, times: list[float]
) -> tuple[str, str, str, str, str]:
    middle = times[len(times) // 2] if times else None
    most = times[len(times) * 99 // 100] if times else None
    count = len(times)
    rate = count_text(count / seconds)
    return name, count_text(count), rate, seconds_text(middle), seconds_text(most)
