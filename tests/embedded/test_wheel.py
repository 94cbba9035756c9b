"""The built wheel answers at once: it brings its machine code along."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evermat.engines.embedded import kernel_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECT = Path(__file__).resolve().parents[2]
FIRST_ANSWER, LATER, WHOLE_RUN = 5.0, 1.0, 8.0
"""Seconds: of a clock, of a processor, and of a clock."""

EXAMPLE = """
import evermat
kb = evermat.KnowledgeBase('''
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
''')
kb.load({"edge": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")]})
print(kb.delete("edge", [("b", "c")]))
print(sorted(kb.query("reach(?x, 'd')")))
"""
ANSWER = "<Change edge -1, reach -2>\n[('a',), ('c',)]\n"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


def run(
    command: Sequence[str | Path], **settings: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **settings}
    environment.pop("PYTHONPATH", None)
    if "HOME" in settings:
        environment.pop(kernel_cache.SETTING, None)
    done = subprocess.run(
        command,
        capture_output=True,
        check=False,
        cwd=home if (home := settings.get("HOME")) != os.devnull else None,
        env=environment,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps"]
    run([*pip, "--wheel-dir", str(folder), str(PROJECT)])
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "venv", folder])
    python = folder / "bin" / "python"
    constraints = PROJECT / "constraints.txt"
    run([python, "-m", "pip", "install", "--quiet", "-c", constraints, wheel])
    return python


def test_the_wheel_has_machine_code(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    images = [name for name in names if name.endswith(".image")]
    assert images == [
        f"evermat/engines/embedded/prebuilt/{kernel_cache.BASELINE}.image"
    ]
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    assert not [name for name in names if name.endswith((".o", ".nbi", ".nbc"))]


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_first_answer_needs_no_compiler(python: Path, tmp_path: Path) -> None:
    start = processor_seconds()
    first = run([python, "-c", EXAMPLE], HOME=str(tmp_path))
    assert (first.stdout, first.stderr) == (ANSWER, "")
    # What a process uses does not depend on what else runs, as a clock does.
    assert processor_seconds() - start < FIRST_ANSWER
    times = []
    for _ in range(3):
        start = processor_seconds()
        run([python, "-c", EXAMPLE], HOME=str(tmp_path))
        times.append(processor_seconds() - start)
    assert min(times) < LATER


def test_the_command_line_answers_soon(python: Path, tmp_path: Path) -> None:
    (tmp_path / "edge.csv").write_text("a,b\nb,c\nc,d\n")
    (tmp_path / "then.toml").write_text('[delete]\nedge = [["b", "c"]]\n')
    (tmp_path / "rules.dl").write_text(
        "reach(?x, ?y) :- edge(?x, ?y) .\n"
        "reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .\n"
    )
    evermat = python.with_name("evermat")
    start = processor_seconds()
    command = ["run", "rules.dl", "--facts", "edge.csv", "--then", "then.toml"]
    done = run([evermat, *command], HOME=str(tmp_path))
    assert "compiling" not in done.stderr
    assert processor_seconds() - start < WHOLE_RUN


def test_nothing_need_be_written(python: Path) -> None:
    done = run(
        [python, "-B", "-c", EXAMPLE],
        HOME="/dev/null",
        XDG_CACHE_HOME="/dev/null",
        TMPDIR="/dev/null",
    )
    assert (done.stdout, done.stderr) == (ANSWER, "")
