"""Writing facts as RDF files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph

from evermat.columns import term_table
from evermat.io.files import UnknownFormatError, data_file
from evermat.io.ntriples import ntriples_blocks
from evermat.io.writing import write_table
from evermat.rdf.namespaces import PREFIXES
from evermat.rdf.reading import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa


def write_rdf(
    table: pa.Table,
    path: str | Path,
    format: str | None = None,  # noqa: A002  as users say it
    *,
    predicate: str | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> None:
    """Write facts as N-Triples, N-Quads, Turtle, TriG or RDF/XML.

    Args:
        table: subjects, predicates and objects; or the rows of a predicate with one or
            two arguments.
        path: the file; its suffix says the format, and may be followed by `.gz`, `.zst`
            or `.bz2`.
        format: `nt`, `nq`, `ttl`, `trig` or `rdf`; overrules the suffix.
        predicate: the name of a predicate with one or two arguments; by default the
            name of the file.
        prefixes: for Turtle, TriG and RDF/XML; by default rdf, rdfs, owl, xsd, skos.

    Raises:
        UnknownFormatError: the suffix is not one of RDF.
        NotTriplesError: the rows are not triples.
    """
    file = data_file(path, format=format)
    if not file.is_rdf:
        raise UnknownFormatError(format or file.path.name, rdf=True)
    blocks = ntriples_blocks(term_table(table), predicate or file.predicate)
    with file.replace() as sink:
        if file.format in {"nt", "nq"}:  # a triple is a quad of the default graph
            for block in blocks:
                sink.write(block)
        else:
            pyoxigraph.serialize(
                _triples(blocks),
                sink,
                FORMATS[file.format],
                prefixes=dict(PREFIXES if prefixes is None else prefixes),
            )


def write_facts(
    table: pa.Table,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  as users say it
    predicate: str | None = None,
    header: bool = False,
    terms: bool = False,
) -> None:
    """Write facts in any format there is; see `write_rdf` and `write_table`."""
    if data_file(path, format=format).is_rdf:
        write_rdf(table, path, format, predicate=predicate)
    else:
        write_table(table, path, format=format, header=header, terms=terms)


def _triples(blocks: Iterator[pa.Buffer]) -> Iterator[pyoxigraph.Triple]:
    for block in blocks:
        for quad in pyoxigraph.parse(block.to_pybytes(), FORMATS["nt"], lenient=True):
            yield quad.triple
