"""Programs written for Soufflé and Nemo give the answers of Soufflé and Nemo."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.program_files import SkippedRowsWarning, read_program, write_sinks
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
SOUFFLE = [pytest.param(case, id=case.name) for case in souffle_cases()] or [NO_DATA]
NEMO = [pytest.param(case, id=case.name) for case in nemo_cases()] or [NO_DATA]


@pytest.mark.parametrize("case", SOUFFLE)
def test_souffle_program(case: Case, tmp_path: Path) -> None:
    kb = KnowledgeBase(case.program)
    program = read_program(case.program)
    write_sinks(program, lambda name: kb.facts(name).to_terms(), tmp_path)
    for name, expected in case.expected.items():
        assert souffle_rows(tmp_path / f"{name}.csv") == souffle_rows(expected), name


@pytest.mark.parametrize("case", NEMO)
def test_nemo_program(case: Case, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        # Some of the programs are about rows that do not fit.
        warnings.simplefilter("ignore", SkippedRowsWarning)
        kb = KnowledgeBase(case.program)
    program = read_program(case.program)
    write_sinks(program, lambda name: kb.facts(name).to_terms(), tmp_path)
    found = {name: nemo_rows(tmp_path / name) for name in case.expected}
    expected = {name: nemo_rows(path) for name, path in case.expected.items()}
    assert without_labels(found) == without_labels(expected)


@pytest.mark.skipif(not SOUFFLE or SOUFFLE == [NO_DATA], reason=f"no data at {DATA}")
def test_all_programs_are_there() -> None:
    assert (len(SOUFFLE), len(NEMO)) == (45, 39)
