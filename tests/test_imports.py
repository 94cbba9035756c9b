"""Importing the package is quick, and its public names are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evermat

HEAVY = ("numba", "numpy", "pyarrow", "pandas", "polars", "pyspark", "typer", "rich")
MODULES_OF_OURS = 1
"""How many of our modules `import evermat` loads."""
MODULES = 60
"""How many others, at most; there were 29 when this was written."""


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


def test_import_loads_few_modules() -> None:
    code = (
        "import sys; before = set(sys.modules); import evermat;"
        "print(*(set(sys.modules) - before))"
    )
    loaded = in_fresh_interpreter(code).split()
    ours = [name for name in loaded if name.split(".")[0] == "evermat"]
    assert len(ours) == MODULES_OF_OURS
    assert len(loaded) - len(ours) <= MODULES


@pytest.mark.parametrize("name", evermat.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(evermat, name) is not None
    assert name in dir(evermat)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute `Knowledge`"):
        evermat.Knowledge  # type: ignore[attr-defined]  # noqa: B018
