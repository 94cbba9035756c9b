"""What all tests share: engines to run on, and the place of outside test data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from evermat.engines import ENGINES, make_engine
from evermat.engines.spark.session import missing_part

if TYPE_CHECKING:
    from evermat.algebra import Engine

PROJECT = Path(__file__).resolve().parent.parent
ENGINE_OPTION = "--engines"
SPARK = "spark"
_SETTINGS = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test."""

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
        default=",".join(name for name in ENGINES if name != SPARK),
        help="the engines to test, separated by commas; spark is not among them "
        "unless it is named",
    )


def _engines(config: pytest.Config) -> list[str]:
    names: str = config.getoption(ENGINE_OPTION)
    return names.split(",")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        names = [
            pytest.param(name, marks=pytest.mark.spark) if name == SPARK else name
            for name in _engines(metafunc.config)
        ]
        metafunc.parametrize("engine_name", names)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out tests on Spark that nobody asked for, or that cannot run."""
    reason: str | None = "named by `--engines=spark` and run by `make test-spark`"
    if SPARK in _engines(config):
        reason = missing_part()
        _draw_few_examples(items)
        _play_few_stories(items)
    for item in items:
        if reason is not None and item.get_closest_marker(SPARK):
            item.add_marker(pytest.mark.skip(reason=reason))


def _draw_few_examples(items: list[pytest.Item]) -> None:
    """A job on Spark takes a thousand times as long as a step of other engines."""
    number = int(os.environ.get("EVERMAT_SPARK_EXAMPLES", "3"))
    for item in items:
        test = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False):
            drawn = getattr(test, _SETTINGS, settings())
            if drawn.max_examples > number:
                few = settings(drawn, max_examples=number, phases=[Phase.generate])
                setattr(test, _SETTINGS, few)


def _play_few_stories(items: list[pytest.Item]) -> None:
    """Of tests with a seed, all but the one with the first take too long on Spark."""
    first: dict[object, int] = {}
    stories = [
        (item, (item.path, getattr(item, "originalname", "")), call.params["seed"])
        for item in items
        if (call := getattr(item, "callspec", None)) is not None
        and "seed" in call.params
        and item.get_closest_marker(SPARK)
    ]
    for _, test, seed in stories:
        first[test] = min(seed, first.get(test, seed))
    for item, test, seed in stories:
        if seed != first[test]:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def stories(engine_name: str) -> slice:
    """Which of several random stories are played: on Spark only the first of them."""
    return slice(1) if engine_name == SPARK else slice(None)


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
