"""Compiles all kernels in separate processes, one on each core.

A message on standard error says in advance what is compiled and why, since it takes
most of a minute. Each unit is also cached by its own key: when one file with kernels
changes, units that do not import it are not compiled again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

from evermat.engines.embedded.kernel_sources import HERE, PACKAGE, key_of_unit, units
from evermat.errors import EvermatError
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_STEP = 0.2
"""Seconds between checks for interrupts and for other processes."""

_LAST_LINES = 30
"""Number of lines of a compiler's output that are quoted in an error."""


class CompilationError(EvermatError):
    """Kernels could not be compiled."""

    code: ClassVar[str] = "EM915"


def compile_units(folder: Path, processor: str, features: str) -> dict[str, bytes]:
    """Return the object code of all units for a processor, cached in a folder."""
    made_for = (processor, features, _version_of("numba"), _version_of("llvmlite"))
    files = {
        unit: folder / f"kernels-{_short(key_of_unit(unit, *made_for))}.o"
        for unit in units()
    }
    codes = {unit: _read(file) for unit, file in files.items()}
    missing = [unit for unit, code in codes.items() if code is None]
    if missing:
        _compile(missing, files, processor, features)
    _forget_others(folder, set(files.values()))
    return {unit: codes[unit] or _written(unit, file) for unit, file in files.items()}


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait while another process compiles into the same folder."""
    try:
        import fcntl  # noqa: PLC0415  not everywhere
    except ImportError:
        yield
        return
    with (folder / "kernels.lock").open("w") as lock:
        is_said = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not is_said:
                    _say("waiting for another process, which compiles kernels")
                    is_said = True
                check()
                time.sleep(_STEP)
            except OSError:
                break  # no file locks here: at worst, both compile
        yield


def _compile(
    missing: list[str], files: dict[str, Path], processor: str, features: str
) -> None:
    """Compile units, the largest ones first."""
    start = time.monotonic()
    missing.sort(key=lambda unit: -units()[unit].stat().st_size)
    cores = _core_count()
    _say(
        f"compiling {len(missing)} files of kernels on {cores} cores, once for this "
        f"version and processor: about {_estimate(missing, cores)} s; kept in "
        f"{files[missing[0]].parent}"
    )
    _Crew(missing, files, _environment(processor, features)).work(cores)
    _say(f"compiled in {time.monotonic() - start:.0f} s")


class _Crew:
    """A pool of processes that compile one unit after another."""

    def __init__(
        self, missing: list[str], files: dict[str, Path], environment: dict[str, str]
    ) -> None:
        self._waiting: SimpleQueue[str] = SimpleQueue()
        for unit in missing:
            self._waiting.put(unit)
        self._files = {unit: files[unit] for unit in missing}
        self._environment = environment
        self._done = 0
        self._failures: list[str] = []
        self._processes: list[subprocess.Popen[str]] = []

    def work(self, cores: int) -> None:
        """Compile everything; an interrupt ends all processes."""
        count = min(cores, self._waiting.qsize())
        threads = [Thread(target=self._lead, daemon=True) for _ in range(count)]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                check()
                time.sleep(_STEP)
                self._show_progress()
        finally:
            for process in self._processes:
                process.kill()
            self._show_progress("")
        if self._failures:
            raise CompilationError(
                f"kernels could not be compiled: {self._failures[0]}",
                help="see that Numba works here: python -m numba -s",
            )

    def _show_progress(self, text: str | None = None) -> None:
        """Write the progress to a terminal, over the previous line."""
        if sys.stderr.isatty():
            shown = text if text is not None else f"{self._done} of {len(self._files)}"
            print(f"\r\033[K{shown}", end="", file=sys.stderr, flush=True)  # noqa: T201

    def _lead(self) -> None:
        """Assign units to one process until there are none left."""
        with subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", f"{PACKAGE}.compiler"],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            self._processes.append(process)
            while not self._failures:
                try:
                    unit = self._waiting.get_nowait()
                except Empty:
                    break
                if not self._is_compiled(process, unit):
                    break
            process.communicate()

    def _is_compiled(self, process: subprocess.Popen[str], unit: str) -> bool:
        """Compile one unit; return whether it succeeded."""
        if process.stdin is None or process.stdout is None or process.stderr is None:
            return False
        try:
            process.stdin.write(f"{unit}\t{self._files[unit]}\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass
        if process.stdout.readline().strip() == unit:
            self._done += 1
            return True
        said = process.stderr.read().strip().splitlines()[-_LAST_LINES:]
        self._failures.append("\n".join([unit, *said]))
        return False


def _environment(processor: str, features: str) -> dict[str, str]:
    """Return the environment of processes that compile for a processor."""
    root = HERE.parents[len(PACKAGE.split(".")) - 2].parent
    paths = [str(root), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(each for each in paths if each),
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": features,
    }


def _estimate(missing: list[str], cores: int) -> int:
    """Estimate the seconds that compiling takes, from the sizes of the files."""
    size = sum(units()[unit].stat().st_size for unit in missing)
    return 5 + size // (4_000 * cores)


def _core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read(file: Path) -> bytes | None:
    """Return object code that was written before, if it is intact."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, _, code = content.partition(b"\n")
    return code if digest.decode("ascii", "replace") == _hash(code) else None


def _written(unit: str, file: Path) -> bytes:
    code = _read(file)
    if code is None:
        raise CompilationError(f"the object code of {unit} is not in `{file}`")
    return code


def _forget_others(folder: Path, current: set[Path]) -> None:
    """Remove code of earlier sources that is more than 90 days old."""
    oldest = time.time() - 90 * 86_400
    for pattern in ("kernels-*.o", "kernels-*.image"):
        for file in set(folder.glob(pattern)) - current:
            try:
                if file.stat().st_mtime < oldest:
                    file.unlink()
            except OSError:
                continue


def _version_of(package: str) -> str:
    from importlib.metadata import version  # noqa: PLC0415  slow to import

    return version(package)


def _hash(code: bytes) -> str:
    return sha256(code).hexdigest()


def _short(key: str) -> str:
    return key[:24]


def _say(text: str) -> None:
    """Write a line for users who wait."""
    print(f"evermat: {text}", file=sys.stderr, flush=True)  # noqa: T201
