"""Pipelines on Spark give what they give embedded, and fail as clearly."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat import KnowledgeBase
from evermat.pipeline import Pipeline, read_config
from evermat.pipeline.config import EngineSettings
from evermat.pipeline.errors import SchemaMismatchError, SourceError
from evermat.pipeline.spark_session import plain_spark_errors, spark_session
from evermat.rdf import RdfSyntaxError
from pipelines import OUTPUT, PROGRAM, configured, rejected, rows, run, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from evermat.errors import EvermatError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pipeline"
SHORT = 'predicate = "edge"'
MIXED = """
[program]
text = '''
    known(?s) :- [?s, ?p, ?o] .
    both(?n, ?d) :- row(?n, ?d, ?t), known(?n) .
'''

[[source]]
name = "table"
path = "table.parquet"
max_rejected = 3
[source.columns]
number = { type = "integer", min = 0 }
day = "date"
time = { type = "datetime", required = false }
price = { type = "decimal", max = 9 }
[[source.facts]]
predicate = "row"
arguments = [{ iri = "http://e/{number}" }, "day", "price"]
[[source.facts]]
predicate = "at"
arguments = ["number", "time"]

[[source]]
name = "lines"
path = ["part-*.nt", "quads.nq"]
format = "nq"
max_rejected = "all"

[[source]]
name = "turtle"
path = "more.ttl"

[[output]]
predicates = ["row", "at", "triple", "both"]
path = "out/{predicate}"
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = EngineSettings(master="local[2]")
    with spark_session(settings, "tests") as session:
        yield session


def mixed_data(folder: Path) -> None:
    table = pa.table(
        {
            "number": pa.array([1, 2, 3, -1, None], pa.int32()),
            "day": pa.array([1, 2, 3, 4, 5], pa.int32()).cast(pa.date32()),
            "time": pa.array([10**15, None, 3, 4, 5], pa.timestamp("us", "UTC")),
            "price": pa.array(["1.50", "2.50", "99.99", "1", "1"]).cast(
                pa.decimal128(9, 2)
            ),
            "unused": [[1], [2], [3], [4], [5]],
        }
    )
    pq.write_table(table, folder / "table.parquet")
    for name in ("part-1.nt", "part-2.nt"):
        text = b"_:b <http://e/p> <http://e/1> .\n<http://e/1> <http://e/p> 'no' .\n"
        (folder / name).write_bytes(text + b'<http://e/2> <http://e/p> "\xff" .\n')
    quads = '<http://e/1> <http://e/p> "x"@en <http://e/g> .\n'
    (folder / "quads.nq").write_text(quads, encoding="utf-8")
    (folder / "more.ttl").write_text(
        "<http://e/1> <http://e/q> 7, [ <http://e/r> true ] .", encoding="utf-8"
    )


@pytest.mark.usefixtures("spark")
def test_both_engines_give_the_same(tmp_path: Path) -> None:
    results = []
    for engine in ("embedded", "spark"):
        folder = tmp_path / "here"
        folder.mkdir()
        mixed_data(folder)
        config = configured(folder, MIXED, engine=engine)
        finished = run(config)
        facts = [rows(folder / "out" / n) for n in ("row", "at", "triple", "both")]
        aside = [rejected(config, finished, name) for name in ("table", "lines")]
        sources = [
            {**each, "sample": sorted(map(str, each["sample"]))}
            for each in finished.report.sources
        ]
        report = finished.report
        results.append((facts, aside, sources, report.predicates, report.changes))
        shutil.rmtree(folder)
    for embedded, on_spark in zip(*results, strict=True):
        assert embedded == on_spark
    facts, aside, *_ = results[0]
    assert [len(each) for each in facts] == [2, 1, 6, 1]
    assert [len(each) for each in aside] == [3, 4]


@pytest.mark.usefixtures("spark")
def test_tables_of_spark_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    edges = [("a", "b"), ("b", "c"), ("c", None)]
    spark.createDataFrame(edges, "x string, y string").createOrReplaceTempView("links")
    config = configured(
        tmp_path,
        PROGRAM,
        '[[source]]\nformat = "table"\ntable = "links"\nmax_rejected = 1',
        'predicate = "edge"',
        '[[output]]\npredicate = "reach"\nformat = "table"\ntable = "evermat_reach"',
        engine="spark",
    )
    finished = run(config)
    try:
        table = spark.table("evermat_reach").collect()
        assert sorted(map(tuple, table)) == [("a", "b"), ("a", "c"), ("b", "c")]
        (wrong,) = rejected(config, finished, "edge")
        assert (wrong["file"], wrong["column"]) == (None, "y")
        # The embedded engine borrows Spark for tables.
        run(replace(config, engine=replace(config.engine, name="embedded")))
        assert spark.table("evermat_reach").count() == 3
    finally:
        spark.sql("DROP TABLE IF EXISTS evermat_reach")


def test_feeds_that_are_tables_have_no_gaps(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "edge.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    config = configured(
        tmp_path,
        PROGRAM,
        '[state]\npath = "state"\n[[source]]\npredicate = "edge"\npath = "edge.csv"',
        'columns = { x = "integer", y = "integer" }',
        '[[output]]\npredicate = "edge"\nformat = "table"\ntable = "evermat_feed"',
        'mode = "changes"',
    )
    try:
        run(config)
        # Nothing changes, and nothing has no types.
        Pipeline(config).update()
        kb = KnowledgeBase.open(str(config.state))
        kb.insert("edge", [(2, 3)])
        kb.delete("edge", [(1, 2)])
        Pipeline(config).update()
        table = spark.table("evermat_feed").collect()
        lines = [f"{row['sign']}{row[2]}{row[3]}" for row in sorted(table)]
        assert lines == ["+12", "+23", "-12", "+12", "-23"]
    finally:
        spark.sql("DROP TABLE IF EXISTS evermat_feed")


def test_databases_are_read_through_jdbc(spark: SparkSession, tmp_path: Path) -> None:
    url = f"jdbc:derby:{tmp_path / 'database'}"
    system = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]  # noqa: SLF001
    system.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    driver = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    frame = spark.createDataFrame([(n, n + 1) for n in range(6)], "x int, y int")
    frame.write.jdbc(f"{url};create=true", "links", properties={"driver": driver})
    common = f'[[source]]\nformat = "jdbc"\nurl = "{url}"\ndriver = "{driver}"\n'
    config = configured(
        tmp_path,
        PROGRAM,
        common + 'table = "links"\npredicate = "edge"',
        'columns = { x = { type = "integer", max = 4 }, y = "integer" }',
        'max_rejected = 1\npartition_column = "X"',
        "lower = 0\nupper = 6\npartitions = 2",
        OUTPUT,
        engine="spark",
    )
    finished = run(config)
    assert len(rows(tmp_path / "out/reach")) == 15
    assert finished.report.sources[0]["rows"] == 6
    config = configured(
        tmp_path, common + 'table = "nowhere"\npredicate = "edge"', engine="spark"
    )
    with pytest.raises(SourceError, match="the database cannot be read") as raised:
        run(config)
    assert raised.value.__notes__ == [" = step: read source edge"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_bad_sources_fail_alike(tmp_path: Path, engine: str) -> None:
    data = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": ["a"] * 99, "y": ["b"] * 99}), data)
    whole = data.getvalue().to_pybytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:100])
    (tmp_path / "scratched.parquet").write_bytes(b"PAR1" + b"\0" * 60 + whole[64:])
    pq.write_table(pa.table({"x": [1.5]}), tmp_path / "other.parquet")
    (tmp_path / "bad.ttl").write_text("<http://e/a> <", encoding="utf-8")
    cases: list[tuple[str, str, type[EvermatError]]] = [
        ('path = "cut.parquet"', "cut.parquet", SourceError),
        ('path = "scratched.parquet"', "", SourceError),
        ('path = "gone.csv"', "there is no file", SourceError),
        ('path = "bad.ttl"', "`bad.ttl` in line 1", RdfSyntaxError),
        (
            'path = "other.parquet"\ncolumns = { x = "integer", y = "string" }',
            "holds `double` where `integer` is wanted",
            SchemaMismatchError,
        ),
    ]
    for text, message, kind in cases:
        config = source(tmp_path, SHORT, text, engine=engine)
        with pytest.raises(kind) as raised:
            run(config)
        assert message in raised.value.message
        assert raised.value.__notes__ == [" = step: read source edge"]
        assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("spark")
def test_the_example(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("out"))
    for engine in ("embedded", "spark"):
        config = read_config(folder / "pipeline.toml")
        run(replace(config, engine=replace(config.engine, name=engine)))
        (folder / "out").rename(folder / engine)
    for name in ("hazard", "needs", "changes"):
        assert rows(folder / "embedded" / name) == rows(folder / "spark" / name)


def test_errors_of_spark_are_explained(spark: SparkSession) -> None:
    with (
        warnings.catch_warnings(),
        pytest.raises(SourceError, match="there is no such table"),
        plain_spark_errors(),
    ):
        spark.table("nothing_of_the_kind").collect()


@pytest.mark.usefixtures("spark")
def test_states_are_updated_and_shared_by_engines(tmp_path: Path) -> None:
    state = '[state]\npath = "state"\n'
    feed = (
        '[[output]]\nname = "feed"\npredicate = "reach"\nmode = "changes"\n'
        'path = "out/feed"\nformat = "csv"\n'
    )
    edge = tmp_path / "edge.csv"
    edge.write_text("x,y\na,b\nb,c\n", encoding="utf-8")
    parts = (PROGRAM, state, "[[source]]", SHORT, 'path = "edge.csv"', OUTPUT, feed)
    run(configured(tmp_path, *parts, engine="spark"))
    edge.write_text("x,y\na,b\nc,d\n", encoding="utf-8")
    Pipeline(configured(tmp_path, *parts, engine="spark")).update()
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("c", "d")]
    edge.write_text("x,y\nc,d\n", encoding="utf-8")
    Pipeline(configured(tmp_path, *parts, engine="embedded")).update()
    assert rows(tmp_path / "out/reach") == [("c", "d")]
    signs = [
        sorted(line.split(",", 1)[1] for line in file.read_text().splitlines()[1:])
        for file in sorted((tmp_path / "out/feed").iterdir())
    ]
    assert signs == [
        ["+,a,b", "+,a,c", "+,b,c"],
        ["+,c,d", "-,a,c", "-,b,c"],
        ["-,a,b"],
    ]


def test_any_format_of_spark_is_a_source(spark: SparkSession, tmp_path: Path) -> None:
    links = [("a", "b", 1), ("b", "c", 2)]
    frame = spark.createDataFrame(links, "x string, y string, day int")
    frame.write.partitionBy("day").orc(str(tmp_path / "edges"))
    config = source(
        tmp_path,
        'predicate = "edge"\nformat = "spark"\nreader = "orc"\npath = "edges"',
        'arguments = ["x", "y"]\n[source.options]\nmergeSchema = true',
        engine="spark",
    )
    run(config)
    assert rows(tmp_path / "out/reach") == [("a", "b"), ("a", "c"), ("b", "c")]
