"""The universities as RDF: the same facts as N-Triples, the same rules over triples."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.bench.generators.universities import rules
from evermat.columns import terms_of_kind
from evermat.io.ntriples import ntriples_blocks
from evermat.lang.terms import RDF_TYPE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evermat.bench.problem import Problem

NAMESPACE = "http://universities.example/"
LITERALS = frozenset({"name", "email", "telephone"})
"""Properties whose values are texts."""
FILES = 4

_UNARY = re.compile(r"(\w+)\((\?\w+)\)")
_BINARY = re.compile(r"(\w+)\((\?\w+), (\?\w+)\)")


def triple_rules() -> str:
    """The rules over triples: classes are types, and properties are properties."""
    text = _BINARY.sub(r"[\2, :\1, \3]", rules())
    text = _UNARY.sub(r"[\2, a, :\1]", text)
    return f"@prefix : <{NAMESPACE}> .\n{text}"


def triples(facts: Mapping[str, pa.Table]) -> pa.Table:
    """Facts of plain predicates as one table of triples."""
    return pa.concat_tables(_triples(name, table) for name, table in facts.items())


def write_triples(problem: Problem, folder: Path) -> list[Path]:
    """Write the facts as a few files of N-Triples."""
    table = triples(problem.facts)
    rows = -(-table.num_rows // FILES)
    paths = []
    for number in range(FILES):
        path = folder / f"universities-{number}.nt"
        with path.open("wb") as file:
            for block in ntriples_blocks(table.slice(number * rows, rows)):
                file.write(block)
        paths.append(path)
    return paths


def _triples(name: str, table: pa.Table) -> pa.Table:
    subjects = _things(table.column(0))
    property_, type_ = (
        terms_of_kind(Kind.IRI, pa.repeat(pa.scalar(iri), table.num_rows))
        for iri in (NAMESPACE + name, RDF_TYPE.text)
    )
    if table.num_columns == 1:
        columns = [subjects, type_, property_]
    elif name in LITERALS:
        texts = table.column(1).combine_chunks()
        columns = [subjects, property_, terms_of_kind(Kind.STRING, texts)]
    else:
        columns = [subjects, property_, _things(table.column(1))]
    return pa.table(columns, names=["s", "p", "o"])


def _things(column: pa.ChunkedArray) -> pa.StructArray:
    names = pc.binary_join_element_wise(NAMESPACE, column.combine_chunks(), "")
    return terms_of_kind(Kind.IRI, names)
