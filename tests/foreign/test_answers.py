"""Programs written for Soufflé and Nemo give the answers of Soufflé and Nemo."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.kb.program_files import SkippedRowsWarning, read_program, write_sinks
from foreign.expected_answers import (
    DATA,
    Case,
    nemo_cases,
    nemo_rows,
    souffle_cases,
    souffle_rows,
    without_labels,
)

if TYPE_CHECKING:
    from pathlib import Path

NO_DATA = pytest.param(
    None,
    id="no data",
    marks=pytest.mark.skip(reason=f"no programs at {DATA}; set EVERMAT_TEST_DATA"),
)
SOUFFLE, LARGE_SOUFFLE, NEMO = (
    [pytest.param(case, id=case.name) for case in cases] or [NO_DATA]
    for cases in (
        [case for case in souffle_cases() if not case.is_large],
        [case for case in souffle_cases() if case.is_large],
        nemo_cases(),
    )
)


def written(case: Case, engine: str, folder: Path) -> Path:
    """The folder with the files that the program asks for."""
    # Some of the programs share their files with others.
    kb = KnowledgeBase(case.program, engine=engine, allow_paths=[DATA])
    program = read_program(case.program)
    write_sinks(program, lambda name: kb.facts(name).to_terms(), folder)
    return folder


@pytest.mark.parametrize("case", SOUFFLE)
def test_souffle_program(case: Case, engine_name: str, tmp_path: Path) -> None:
    folder = written(case, engine_name, tmp_path)
    for name, expected in case.expected.items():
        assert souffle_rows(folder / f"{name}.csv") == souffle_rows(expected), name


@pytest.mark.parametrize("case", LARGE_SOUFFLE)
def test_large_souffle_program(case: Case, tmp_path: Path) -> None:
    folder = written(case, "embedded", tmp_path)
    for name, expected in case.expected.items():
        assert souffle_rows(folder / f"{name}.csv") == souffle_rows(expected), name


@pytest.mark.parametrize("case", NEMO)
def test_nemo_program(case: Case, engine_name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        # Some of the programs are about rows that do not fit.
        warnings.simplefilter("ignore", SkippedRowsWarning)
        folder = written(case, engine_name, tmp_path)
    found = {name: nemo_rows(folder / name) for name in case.expected}
    expected = {name: nemo_rows(path) for name, path in case.expected.items()}
    assert without_labels(found) == without_labels(expected)


@pytest.mark.skipif([NO_DATA] == NEMO, reason=f"no data at {DATA}")
def test_all_programs_are_there() -> None:
    assert (len(SOUFFLE), len(LARGE_SOUFFLE), len(NEMO)) == (44, 1, 39)
