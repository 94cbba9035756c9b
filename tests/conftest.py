"""What all tests share: engines to run on, and the place of outside test data."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from evermat.engines import ENGINES, make_engine

if TYPE_CHECKING:
    from evermat.algebra import Engine

PROJECT = Path(__file__).resolve().parent.parent
ENGINE_OPTION = "--engines"

# Programs with many facts take a while; a fixed seed makes a failure repeatable.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("EVERMAT_TEST_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        ENGINE_OPTION,
        default=",".join(name for name in ENGINES if _is_there(name)),
        help="the engines to test, separated by commas",
    )


def _is_there(name: str) -> bool:
    module, _ = ENGINES[name]
    return importlib.util.find_spec(module) is not None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        names = metafunc.config.getoption(ENGINE_OPTION).split(",")
        metafunc.parametrize("engine_name", names)


@pytest.fixture
def engine(engine_name: str) -> Engine:
    """A new engine; the test is run once for each engine."""
    return make_engine(engine_name)


@pytest.fixture
def shared_data() -> Path:
    """The folder of data sets that are too large for the project."""
    setting = os.environ.get("EVERMAT_TEST_DATA", "../shared/data")
    folder = (PROJECT / setting).resolve()
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set EVERMAT_TEST_DATA")
    return folder
