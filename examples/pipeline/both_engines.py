"""Runs the pipeline of this folder on Spark and embedded, and compares the results.

Every engine writes to a folder of its own; rows are compared as sets, with their types.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow.dataset as ds

from evermat.cli.pipeline import StepLines
from evermat.pipeline import Pipeline, read_config

HERE = Path(__file__).resolve().parent
ENGINES = ("embedded", "spark")


def main() -> int:
    """Run both; 0 if they agree."""
    with tempfile.TemporaryDirectory(prefix="evermat-example-") as folder:
        for engine in ENGINES:
            run_on(engine, Path(folder) / engine)
        embedded, spark = (results(Path(folder) / engine) for engine in ENGINES)
    for name in sorted(embedded | spark):
        same = embedded.get(name) == spark.get(name)
        rows = len(embedded.get(name, ((), []))[1])
        print(f"{name:<12} {rows:>6,} rows   {'same' if same else 'DIFFERENT'}")
    return 0 if embedded == spark else 1


def run_on(engine: str, folder: Path) -> None:
    """Run the pipeline on an engine, with its outputs in a folder."""
    config = read_config(HERE / "pipeline.toml")
    outputs = tuple(
        replace(output, path=str(output.path).replace(f"{HERE}/out", str(folder)))
        for output in config.outputs
    )
    print(f"\n{config.name} on {engine}", file=sys.stderr, flush=True)
    lines = StepLines()
    chosen = replace(
        config,
        engine=replace(config.engine, name=engine),
        outputs=outputs,
        rejected=str(folder / "rejected"),
        reports=str(folder / "runs"),
    )
    Pipeline(chosen, watcher=lines, progress=lines).run()


def results(folder: Path) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """The types and rows of every output, and the rows that were rejected."""
    found = {}
    for output in sorted(folder.iterdir()):
        if output.name == "runs":
            continue
        kind = "csv" if list(output.rglob("*.csv")) else "parquet"
        files = [str(file) for file in output.rglob(f"*.{kind}") if file.is_file()]
        table = ds.dataset(files, format=kind).to_table()
        rows = sorted(str(list(row.values())) for row in table.to_pylist())
        found[output.name] = (tuple(map(str, table.schema.types)), rows)
    return found


if __name__ == "__main__":
    sys.exit(main())
