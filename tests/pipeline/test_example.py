"""The example runs, and its data is what its script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

from pipelines import embedded_copy, rows

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pipeline"


def test_the_data_is_what_the_script_writes(tmp_path: Path) -> None:
    script = runpy.run_path(str(EXAMPLE / "make_data.py"))
    script["main"].__globals__["FOLDER"] = tmp_path
    script["main"]()
    for file in (EXAMPLE / "data").iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


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
