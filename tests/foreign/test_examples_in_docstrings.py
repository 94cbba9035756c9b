"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "evermat.io.nemo_tables",
        "evermat.lang.dialects.dlog",
        "evermat.lang.dialects.nemo",
        "evermat.lang.dialects.souffle",
        "evermat.kb.program_files",
    ],
)
def test_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert (result.failed, result.attempted > 0) == (0, True)
