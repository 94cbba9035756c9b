"""Importing the package is quick, and its public names are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evermat

HEAVY = ("numba", "numpy", "pyarrow", "pandas", "polars", "pyspark", "typer", "rich")
LIMIT = 0.3


def in_fresh_interpreter(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, evermat; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert in_fresh_interpreter(code) == "[]"


def test_constants_and_programs_load_nothing_heavy() -> None:
    code = (
        "import sys; from evermat import IRI, Rule, variables, EvermatError;"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert in_fresh_interpreter(code) == "[]"


def test_import_is_quick() -> None:
    code = (
        "import time; start = time.perf_counter(); import evermat;"
        "print(time.perf_counter() - start)"
    )
    # The best of several: the machine may be busy with other things.
    assert min(float(in_fresh_interpreter(code)) for _ in range(3)) < LIMIT


@pytest.mark.parametrize("name", evermat.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(evermat, name) is not None
    assert name in dir(evermat)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute `Knowledge`"):
        evermat.Knowledge  # type: ignore[attr-defined]  # noqa: B018
