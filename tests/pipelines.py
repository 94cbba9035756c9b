"""Small pipelines for tests: files in a folder, a configuration, and its results."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.pipeline import Pipeline, read_config

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.pipeline import Config, Finished

REACH = """
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
PROGRAM = f'[program]\ntext = """{REACH}"""\n'
OUTPUT = '[[output]]\npredicate = "reach"\npath = "out/reach"\n'


def configured(folder: Path, *parts: str, engine: str = "embedded") -> Config:
    """A configuration with these parts, in a folder."""
    file = folder / "pipeline.toml"
    file.write_text("\n".join(parts), encoding="utf-8")
    config = read_config(file)
    return replace(config, engine=replace(config.engine, name=engine))


def source(folder: Path, *parts: str, engine: str = "embedded") -> Config:
    """A configuration that closes the edges of one source."""
    return configured(folder, PROGRAM, "[[source]]", *parts, OUTPUT, engine=engine)


def run(config: Config) -> Finished:
    return Pipeline(config).run()


def rows(place: Path) -> list[tuple[object, ...]]:
    """The rows of a folder of Parquet files, in order."""
    table = pq.read_table(place, partitioning=None)
    return sorted(tuple(row.values()) for row in table.to_pylist())


def rejected(config: Config, finished: Finished, name: str) -> list[dict[str, object]]:
    """The rows of a source that a run rejected, in order of file and position."""
    place = f"{config.rejected}/run={finished.report.run}/{name}.parquet"
    found: pa.Table = pq.read_table(place, partitioning=None)
    return sorted(
        found.to_pylist(), key=lambda row: (str(row["file"]), row["position"] or 0)
    )


def embedded_copy(folder: Path, target: Path) -> Path:
    """A copy of a pipeline's folder, run on the embedded engine."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("out"))
    config = read_config(target / "pipeline.toml")
    run(replace(config, engine=replace(config.engine, name="embedded")))
    return target
