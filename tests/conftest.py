"""What all tests share: engines to run on, and the place of outside test data."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings

from engine_ways import treat_small_like_large
from evermat.engines import ENGINES, make_engine
from evermat.engines.spark.session import missing_part
from evermat.errors import redaction
from evermat.functions import _ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evermat.algebra import Engine

pytest_plugins = ["object_store"]
PROJECT = Path(__file__).resolve().parent.parent
ENGINE_OPTION = "--engines"
SHARE_OPTION = "--spark-share"
CONTRACT = PROJECT / "tests" / "algebra"
AGREEMENT = PROJECT / "tests" / "maintenance" / "test_agreement.py"
EMBEDDED = "embedded"
SPARK = "spark"
_SETTINGS = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test."""

QUICK, THOROUGH, LONG = "quick", "thorough", "long"
PROFILE = os.environ.get("EVERMAT_TEST_PROFILE", QUICK)
SHARE_OF_QUICK = 3
"""One in so many examples and seeds is tried by the profile `quick`."""
_COMMON = settings(
    deadline=None,  # programs with many facts take a while, and machines are busy
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# A fixed seed makes a failure repeatable. `quick` tries the first of the examples that
# `thorough` tries; `long` tries others every time.
settings.register_profile(THOROUGH, _COMMON, derandomize=True, max_examples=60)
settings.register_profile(
    QUICK, settings.get_profile(THOROUGH), max_examples=60 // SHARE_OF_QUICK
)
settings.register_profile(LONG, _COMMON, max_examples=2000)
# Few facts would all be kept by the embedded engine, and Spark would do nothing.
os.environ.setdefault("EVERMAT_SPARK_DRIVER_FACTS", "0")
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        ENGINE_OPTION,
        default=",".join(ENGINES),
        help="the engines to test, separated by commas",
    )
    parser.addoption(
        SHARE_OPTION,
        type=int,
        default=12,
        help="one in so many of the tests that all engines share is run on Spark",
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
        path = Path(metafunc.module.__file__)
        if EMBEDDED in names and (CONTRACT in path.parents or path == AGREEMENT):
            mark = pytest.mark.in_turn
            names.append(pytest.param(EMBEDDED, id=f"{EMBEDDED}-in-turn", marks=mark))
        metafunc.parametrize("engine_name", names)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Tests on Spark: fewer of them, one after the other, in one session.

    They are skipped where Spark cannot run, and where the engine was not asked for.
    """
    reason = missing_part() if SPARK in _engines(config) else "Spark was not asked for"
    _play_few_stories(items)
    if PROFILE == QUICK:
        _take_few_seeds(items)
    share: int = config.getoption(SHARE_OPTION)
    shared = [item for item in items if _is_shared_on_spark(item)]
    left_out = set(shared) - set(shared[::share])
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if item.get_closest_marker(SPARK):
            item.add_marker(pytest.mark.xdist_group(SPARK))
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
            elif getattr(config.option, "loadgroup", None):
                _name_by_group(item, SPARK)


def _name_by_group(item: pytest.Item, group: str) -> None:
    """Have pytest-xdist run all tests of a group in one process.

    It tells groups by names of tests, and writes them where pytest from 9.2 on does not
    look any more (pytest-xdist, issue 1386). Without that, every process starts Spark.
    """
    if hasattr(item, "_id"):
        parse = type(item._id).parse  # noqa: SLF001  there is no public way
        item._id = parse(f"{item.nodeid}@{group}")  # noqa: SLF001


def _take_few_seeds(items: list[pytest.Item]) -> None:
    """Mark most seeds of a test as slow; the others test the same with other facts."""
    seeds: dict[object, list[object]] = {}
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "seed" in params:
            test = item.path, getattr(item, "originalname", "")
            known = seeds.setdefault(test, [])
            if params["seed"] not in known:
                known.append(params["seed"])
            if known.index(params["seed"]) % SHARE_OF_QUICK:
                item.add_marker(pytest.mark.slow)


def _is_shared_on_spark(item: pytest.Item) -> bool:
    """Whether it tests what the algorithms do; the contract of engines is another."""
    call = getattr(item, "callspec", None)
    on_spark = call is not None and call.params.get("engine_name") == SPARK
    return on_spark and CONTRACT not in item.path.parents


@pytest.fixture(autouse=True)
def _no_secrets() -> Iterator[None]:
    """Have no text be a secret because another test said so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_known", Counter())
        yield


@pytest.fixture(autouse=True)
def _no_own_functions() -> Iterator[None]:
    """Have no function in Python be there because another test registered it."""
    with mock.patch.dict(_ALL):
        yield


@pytest.fixture(autouse=True)
def _in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the embedded engine treat small changes like large ones, where marked."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("in_turn"):
            treat_small_like_large(patch)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Draw fewer examples in a quick run, and where a test wants a number of its own.

    On Spark only a few are drawn: a job takes a thousand times as long as a step.
    """
    test = getattr(item, "obj", None)
    if not getattr(test, "is_hypothesis_test", False):
        yield
        return
    drawn = getattr(test, _SETTINGS, settings())
    changed = drawn
    if PROFILE == QUICK and drawn.max_examples != settings().max_examples:
        number = max(1, drawn.max_examples // SHARE_OF_QUICK)
        changed = settings(changed, max_examples=number)
    if item.get_closest_marker(SPARK):
        number = int(os.environ.get("EVERMAT_SPARK_EXAMPLES", "3"))
        number = min(number, changed.max_examples)
        changed = settings(changed, max_examples=number, phases=[Phase.generate])
    setattr(test, _SETTINGS, changed)
    try:
        yield
    finally:
        setattr(test, _SETTINGS, drawn)


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
def write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, bytes], Path]:
    """Writes a file into the working folder; its short name is in error texts."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, data: bytes) -> Path:
        path = (tmp_path / name).relative_to(tmp_path)
        path.write_bytes(data)
        return path

    return write_file


@pytest.fixture
def shared_data() -> Path:
    """The folder of data sets that are too large for the project."""
    setting = os.environ.get("EVERMAT_TEST_DATA", "../shared/data")
    folder = (PROJECT / setting).resolve()
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set EVERMAT_TEST_DATA")
    return folder
