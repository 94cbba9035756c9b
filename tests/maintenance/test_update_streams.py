"""Real histories of change: schema.org release by release, and buildings of Brick.

After every step the size of the closure is the published one, and all facts and
counters are those of a computation from scratch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of
from evermat.engines import make_engine
from evermat.kb.materialisation import Materialisation
from evermat.lang.parser import parse_rules
from evermat.rdf import read_rdf

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from evermat.algebra import Engine

RHO_DF = "@include rdfs ."
"""The six rules; no graph here has a literal where they would make it a subject."""

BASE = "http://example.org/"

# The reference engine walks through all triples for every atom.
ENGINE = "embedded"


class Closure:
    """Triples and what follows from them by the six rules."""

    def __init__(self, *paths: Path) -> None:
        self.materialisation = Materialisation(make_engine(ENGINE))
        self.materialisation.update(add_rules=parse_rules(RHO_DF))
        for path in paths:
            self.update("auto", insert=path)

    @property
    def engine(self) -> Engine:
        return self.materialisation.engine

    def update(
        self, algorithm: str, *, insert: Path | None = None, delete: Path | None = None
    ) -> None:
        self.materialisation.update(
            insert=_triples(insert), delete=_triples(delete), algorithm=algorithm
        )

    def size(self) -> int:
        return self.engine.size(self.engine.materialised, "triple")

    def require_correct(self) -> None:
        """All facts and both counters are as if computed from scratch."""
        given = self.engine.snapshot(self.engine.explicit).read("triple")
        twin = Materialisation(make_engine(ENGINE))
        twin.update(add_rules=parse_rules(RHO_DF), insert={"triple": given})
        assert _counted(self.materialisation) == _counted(twin)


def _counted(materialisation: Materialisation) -> pa.Table:
    """The triples with their counters, in order."""
    table = materialisation.reading.counts("triple").flatten()
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _triples(path: Path | None) -> dict[str, pa.Table]:
    return {} if path is None else {"triple": read_rdf(path, base=BASE)}


def _step(closure: Closure, folder: Path, step: dict[str, str], name: str) -> None:
    added, removed = step.get("added_file"), step.get("removed_file")
    closure.update(
        name,
        insert=folder / added if added else None,
        delete=folder / removed if removed else None,
    )


@pytest.mark.parametrize(
    ("algorithm", "number"),
    [("auto", 47), ("dred-c", 12), ("bf-c", 3), ("dred", 3), ("bf", 3), ("fp", 3)],
)
def test_schema_org_releases(shared_data: Path, algorithm: str, number: int) -> None:
    folder = shared_data / "schemaorg"
    base, *steps = json.loads((folder / "index.json").read_text())
    closure = Closure(folder / base["file"])
    assert closure.size() == base["rho_df"]
    for step in steps[:number]:
        _step(closure, folder, step, algorithm)
        assert closure.size() == step["rho_df"], step["version"]
        closure.require_correct()


def test_schema_org_backwards_returns_to_the_start(shared_data: Path) -> None:
    folder = shared_data / "schemaorg"
    base, *steps = json.loads((folder / "index.json").read_text())
    closure = Closure(folder / base["file"])
    start = facts_of(closure.engine, closure.engine.materialised)
    for step in steps[:5]:
        _step(closure, folder, step, "auto")
    for step in reversed(steps[:5]):
        backwards = {
            "added_file": step.get("removed_file"),
            "removed_file": step.get("added_file"),
        }
        _step(closure, folder, backwards, "auto")
    assert facts_of(closure.engine, closure.engine.materialised) == start


@pytest.mark.parametrize("algorithm", ["auto", "dred-c"])
def test_brick_buildings_come_and_go(shared_data: Path, algorithm: str) -> None:
    folder = shared_data / "brick"
    index = json.loads((folder / "index.json").read_text())
    ontology = index["ontologies"]["1.1"]
    closure = Closure(folder / ontology["file"])
    assert closure.size() == ontology["rho_df"]
    buildings = [b for b in index["buildings"] if b["triples"] < 3000][:4]
    for building in buildings:
        path = folder / building["file"]
        closure.update(algorithm, insert=path)
        assert closure.size() == building["with_brick_1_1"]["rho_df"]
        closure.require_correct()
        closure.update(algorithm, delete=path)
        assert closure.size() == ontology["rho_df"]
        closure.require_correct()


@pytest.mark.parametrize("algorithm", ["auto", "dred-c"])
def test_brick_ontology_is_replaced_below_a_building(
    shared_data: Path, algorithm: str
) -> None:
    folder = shared_data / "brick"
    index = json.loads((folder / "index.json").read_text())
    old, new = (index["ontologies"][name]["file"] for name in ("1.1", "1.5"))
    building = next(b for b in index["buildings"] if 1000 < b["triples"] < 3000)
    closure = Closure(folder / old, folder / building["file"])
    closure.update(algorithm, delete=folder / old, insert=folder / new)
    closure.require_correct()
