"""The example runs, and its data is what its script writes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from pipelines import REACH, configured, embedded_copy, rows, run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pipeline"


def test_the_data_is_what_the_script_writes(tmp_path: Path) -> None:
    script = runpy.run_path(str(EXAMPLE / "make_data.py"))
    script["main"].__globals__["FOLDER"] = tmp_path
    script["main"]()
    written, kept = (
        {file.name: file.read_bytes() for file in folder.iterdir()}
        for folder in (tmp_path, EXAMPLE / "data")
    )
    assert written == kept


def test_the_example_finds_what_needs_care(tmp_path: Path) -> None:
    folder = embedded_copy(EXAMPLE, tmp_path / "example")
    hazards = rows(folder / "out" / "hazard")
    needs = set(rows(folder / "out" / "needs"))
    assert len(hazards) == 94
    assert set(hazards) <= needs
    lines = (folder / "out/catalogue/part-00000.csv").read_text(encoding="utf-8")
    products = {line.split(",")[0] for line in lines.splitlines()[1:]}
    assert products
    assert products.isdisjoint(str(product) for product, _ in hazards)
    (run,) = (folder / "out/rejected").iterdir()
    assert {file.name for file in run.iterdir()} == {
        "materials.parquet",
        "products.parquet",
    }


def test_results_of_engines_can_be_compared(tmp_path: Path) -> None:
    script = runpy.run_path(str(EXAMPLE / "both_engines.py"))
    script["run_on"]("embedded", tmp_path / "embedded")
    results = script["results"](tmp_path / "embedded")
    assert {name: len(found) for name, (_, found) in results.items()} == {
        "catalogue": 37,
        "changes": 94,
        "hazard": 94,
        "needs": 2878,
        "rejected": 4,
    }


def test_configurations_in_the_documentation_are_valid(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "pipeline.md").read_text(encoding="utf-8")
    smallest, database, columns, catalogue, expected = re.findall(
        r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data/edge.csv").write_text("x,y\na,b\nb,c\n", encoding="utf-8")
    (tmp_path / "rules.dl").write_text(REACH, encoding="utf-8")
    run(configured(tmp_path, smallest))
    assert len(rows(tmp_path / "out/reach")) == 3
    source = '[[source]]\npath = "people.csv"\npredicate = "person"'
    assert len(configured(tmp_path, source, columns).sources[0].columns) == 5
    (employees,) = configured(tmp_path, database).sources
    assert (employees.format, employees.predicates) == ("database", ("employee",))
    settings = configured(tmp_path, smallest, catalogue).engine.conf
    assert settings[0][0] == "spark.sql.catalogImplementation"
    (expectation,) = configured(tmp_path, smallest, expected).expectations
    assert (expectation.query, expectation.action) == ("overdue(?c)", "warn")
