"""Where runs work: on the driver or distributed, decided before anything is loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat.engines.spark.limits import BYTES_PER_FACT, SHARE, facts_in_memory
from evermat.pipeline import Config, Pipeline
from evermat.pipeline.place import GROWTH, choose_place
from pipelines import OUTPUT, PROGRAM, configured, rows, run

SOURCE = '[[source]]\npredicate = "edge"\npath = "edge.csv"\n'
STATE = '[state]\npath = "state"\n'


def edges(folder: Path, count: int, name: str = "edge.csv") -> None:
    lines = ["x,y", *(f"n{at:05},n{at + 1:05}" for at in range(0, 2 * count, 2))]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def spark(config: Config, room: int | None = None, place: str = "auto") -> Config:
    """The configuration on Spark, with room for so many facts on the driver."""
    conf = () if room is None else (("spark.evermat.driver_facts", str(room)),)
    engine = replace(config.engine, name="spark", conf=conf, place=place)  # type: ignore[arg-type]
    return replace(config, engine=engine)


def no_session() -> None:
    message = "a session was asked for"
    raise AssertionError(message)


def chosen(config: Config, command: str = "run") -> str:
    return choose_place(config, command, no_session).name  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_active_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of other tests have settings of their own."""
    for module in ("place", "runs"):
        monkeypatch.setattr(f"evermat.pipeline.{module}.has_session", lambda: False)
    monkeypatch.delenv("EVERMAT_SPARK_DRIVER_FACTS", raising=False)


def test_facts_that_fit_are_on_the_driver_and_spark_is_not_started(
    tmp_path: Path,
) -> None:
    edges(tmp_path, 10)
    config = spark(configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT))
    report = run(config).report
    assert report.place.startswith("driver: about 3")
    assert "spark" not in report.environment
    assert len(rows(tmp_path / "out/reach")) == 10
    edges(tmp_path, 11)
    report = Pipeline(config).update().report
    assert report.place.startswith("driver: about 3")
    assert len(rows(tmp_path / "out/reach")) == 11
    names = [step["name"] for step in report.steps]
    assert names[:2] == ["read rules", "choose the place"]
    assert "start Spark" not in names


@pytest.mark.parametrize(("room", "place"), [(299, "distributed"), (330, "driver")])
def test_the_size_of_text_files_is_guessed_by_the_length_of_lines(
    tmp_path: Path, room: int, place: str
) -> None:
    edges(tmp_path, 100)
    config = configured(tmp_path, PROGRAM, SOURCE, OUTPUT)
    assert GROWTH == 3
    assert chosen(spark(config, room)) == place


def test_parquet_files_say_their_size(tmp_path: Path) -> None:
    for name in "ab":
        pq.write_table(
            pa.table({"x": range(50), "y": range(50)}), tmp_path / f"{name}.parquet"
        )
    source = '[[source]]\npredicate = "edge"\npath = "*.parquet"\n'
    config = configured(tmp_path, PROGRAM, source, OUTPUT)
    assert chosen(spark(config, 300)) == "driver"
    assert chosen(spark(config, 299)) == "distributed"


def test_a_state_says_how_many_facts_there_are(tmp_path: Path) -> None:
    edges(tmp_path, 100)
    (tmp_path / "new").mkdir()
    update = '[source.update]\ninsert = "new"\n'
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, update, OUTPUT)
    run(config)
    for count in (200, 250):
        assert (chosen(spark(config, count), "update") == "driver") == (count >= 200)
    edges(tmp_path, 40, "new/1.csv")
    assert chosen(spark(config, 230), "update") == "distributed"
    Pipeline(config).update()
    assert chosen(spark(config, 280), "update") == "driver"


def test_the_configuration_may_say_where(tmp_path: Path) -> None:
    edges(tmp_path, 10)
    config = configured(tmp_path, PROGRAM, SOURCE, OUTPUT)
    assert chosen(spark(config, 0, "driver")) == "driver"
    assert chosen(spark(config, None, "distributed")) == "distributed"
    assert chosen(spark(config, 0)) == "distributed"
    written = '[engine]\nplace = "driver"\n'
    assert configured(tmp_path, written, PROGRAM, SOURCE).engine.place == "driver"


def test_tables_have_no_size(tmp_path: Path) -> None:
    source = '[[source]]\npredicate = "edge"\nformat = "table"\ntable = "edges"\n'
    config = configured(tmp_path, PROGRAM, source, OUTPUT)
    assert chosen(spark(config)) == "auto"


def test_room_follows_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def memory(size: int) -> None:
        monkeypatch.setattr("evermat.engines.spark.limits.free_memory", lambda: size)

    memory(8 << 30)
    assert facts_in_memory() == int((8 << 30) * SHARE) // BYTES_PER_FACT
    assert facts_in_memory("4g") == int((4 << 30) * SHARE) // BYTES_PER_FACT
    assert facts_in_memory("16g") == 0


@pytest.mark.spark
def test_what_outgrows_the_driver_is_done_again_distributed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A setting would stay with the Java process that it may start, for other tests.
    monkeypatch.setenv("EVERMAT_SPARK_DRIVER_FACTS", "200")
    edges(tmp_path, 10)
    chain = [f"c{at},c{at + 1}" for at in range(30)]
    with (tmp_path / "edge.csv").open("a") as file:
        file.write("\n".join(chain) + "\n")
    config = spark(configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT))
    report = run(config).report
    assert report.place.startswith("distributed: it outgrew the driver: about 1")
    assert len(rows(tmp_path / "out/reach")) == 10 + 30 * 31 // 2
    assert [source["rows"] for source in report.sources] == [40]
    assert json.loads(Path(f"{config.reports}/{report.run}.json").read_text())["place"]
