"""Published cases of RDF entailment and property paths, as their manifests list them.

They lie in the folder `rdf-entailment` of the outside test data.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph
import pytest

from evermat.columns import constants
from evermat.rdf import read_rdf
from evermat.rdf.reading import FORMATS
from evermat.values import Constant, Kind, language_string, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = tuple[Constant, ...]
Node = pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal

PROJECT = Path(__file__).resolve().parent.parent.parent
DATA = (PROJECT / os.environ.get("EVERMAT_TEST_DATA", "../shared/data")).resolve()
FOLDER = DATA / "rdf-entailment"
BASE = "http://example.org/base/"
NO_DATA = pytest.mark.skipif(
    not FOLDER.exists(), reason=f"no cases at {FOLDER}; set EVERMAT_TEST_DATA"
)
PREFIXES = """
    PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
    PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
    PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
    PREFIX jena: <http://www.hpl.hp.com/semweb/2003/query_tester#>
"""
ENTAILMENTS = """
    SELECT ?case ?kind ?regime ?premise ?conclusion
           (GROUP_CONCAT(COALESCE(STR(?datatype), "")) AS ?recognised) {
        ?manifest mf:entries/rdf:rest*/rdf:first ?case .
        ?case a ?kind ; mf:entailmentRegime ?regime ; mf:action ?premise ;
              mf:result ?conclusion .
        OPTIONAL { ?case mf:recognizedDatatypes/rdf:rest*/rdf:first ?datatype } }
    GROUP BY ?case ?kind ?regime ?premise ?conclusion
"""
PATHS = """
    SELECT ?case ?query ?result ?data
           (GROUP_CONCAT(COALESCE(STR(?file), "")) AS ?graphs) {
        ?manifest mf:entries/rdf:rest*/rdf:first ?case .
        ?case mf:action ?action ; mf:result ?result . ?action qt:query ?query .
        OPTIONAL { ?action qt:data ?data }
        OPTIONAL { ?action qt:graphData ?file } }
    GROUP BY ?case ?query ?result ?data
"""
QUERIES = """
    SELECT * {
        ?case a jena:Test ; jena:data ?data ; jena:query ?query ; jena:result ?result .
        OPTIONAL { ?case jena:tbox ?schema } }
"""


@dataclass(frozen=True)
class Entailment:
    """A premise that entails a conclusion, or does not.

    Without a conclusion the question is whether the premise is inconsistent.
    """

    name: str
    is_positive: bool
    regime: str
    recognised: frozenset[str]
    premise: Path
    conclusion: Path | None


@dataclass(frozen=True)
class PathCase:
    """A query with a property path over a graph, or over several with names."""

    name: str
    query: Path
    data: Path | None
    graphs: tuple[Path, ...]
    result: Path


@dataclass(frozen=True)
class QueryCase:
    """Patterns and the triples that match them after data and schema are closed."""

    name: str
    files: tuple[Path, ...]
    query: Path
    result: Path


def parameters(cases: Iterable[Entailment | PathCase | QueryCase]) -> list[object]:
    """The cases as parameters of a test that is skipped where there are none."""
    found = sorted(cases, key=lambda case: case.name)
    absent = pytest.param(None, id="no data", marks=NO_DATA)
    return [pytest.param(case, id=case.name) for case in found] or [absent]


def entailments(manifest: str) -> list[Entailment]:
    rows = _listed(manifest, ENTAILMENTS)
    return [
        Entailment(
            name=_name(row["case"]),
            is_positive="Positive" in row["kind"].value,
            regime=row["regime"].value,
            recognised=frozenset(row["recognised"].value.split()),
            premise=_path(row["premise"]),
            conclusion=_conclusion(row["conclusion"]),
        )
        for row in rows
    ]


def _conclusion(node: pyoxigraph.NamedNode | pyoxigraph.Literal) -> Path | None:
    """A file, or the literal `false`."""
    return _path(node) if isinstance(node, pyoxigraph.NamedNode) else None


def path_cases(manifest: str) -> list[PathCase]:
    rows = _listed(manifest, PATHS)
    return [
        PathCase(
            name=_name(row["case"]),
            query=_path(row["query"]),
            data=_path(row["data"]) if row["data"] else None,
            graphs=tuple(
                _path(pyoxigraph.NamedNode(file))
                for file in row["graphs"].value.split()
            ),
            result=_path(row["result"]),
        )
        for row in rows
    ]


def query_cases(manifest: str) -> list[QueryCase]:
    rows = _listed(manifest, QUERIES)
    return [
        QueryCase(
            name=_name(row["case"]),
            files=tuple(
                FOLDER / "jena" / node.value
                for node in (row["schema"], row["data"])
                if node is not None
            ),
            query=FOLDER / "jena" / row["query"].value,
            result=FOLDER / "jena" / row["result"].value,
        )
        for row in rows
    ]


def _listed(manifest: str, query: str) -> Iterator[pyoxigraph.QuerySolution]:
    path = FOLDER / manifest
    rows = triples(path, base=path.as_uri()) if path.exists() else []
    found = store_of(rows).query(PREFIXES + query)
    assert isinstance(found, pyoxigraph.QuerySolutions)
    return iter(found)


def _name(node: pyoxigraph.NamedNode) -> str:
    return str(node.value).rpartition("#")[2].rpartition("/")[2]


def _path(node: pyoxigraph.NamedNode) -> Path:
    return Path(node.value.removeprefix("file://"))


def triples(path: Path, base: str = BASE) -> list[Row]:
    """The triples of a file."""
    return list(zip(*map(constants, read_rdf(path, base=base).columns), strict=True))


def store_of(rows: Iterable[Row]) -> pyoxigraph.Store:
    """The triples in the store of another library."""
    text = "\n".join(" ".join([*map(str, row), "."]) for row in rows)
    store = pyoxigraph.Store()
    store.extend(pyoxigraph.parse(text, FORMATS["ttl"]))
    return store


def constant_of(term: Node) -> Constant:
    """The constant for a term of another library."""
    match term:
        case pyoxigraph.NamedNode():
            return Constant(Kind.IRI, term.value)
        case pyoxigraph.BlankNode():
            return Constant(Kind.BLANK, term.value)
    if term.language:
        return language_string(term.value, term.language)
    return literal(term.value, term.datatype.value)
