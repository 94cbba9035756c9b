"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "evermat.io.nemo_tables",
        "evermat.lang.foreign.dlog",
        "evermat.lang.foreign.nemo",
        "evermat.lang.foreign.nemo_files",
        "evermat.lang.foreign.souffle",
        "evermat.program_files",
    ],
)
def test_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert (result.failed, result.attempted > 0) == (0, True)
