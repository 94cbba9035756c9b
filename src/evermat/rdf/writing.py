"""Writing facts as RDF files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyoxigraph

from evermat.io.files import UnknownFormatError, data_file
from evermat.io.ntriples import NotTriplesError, TripleLines
from evermat.io.writing import write_table
from evermat.rdf.namespaces import PREFIXES
from evermat.rdf.reading import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from evermat.columns import TableParts


def write_rdf(
    rows: pa.Table | TableParts,
    path: str | Path,
    format: str | None = None,  # noqa: A002  as users say it
    *,
    predicate: str | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> None:
    """Write facts as N-Triples, N-Quads, Turtle, TriG or RDF/XML.

    Args:
        rows: subjects, predicates and objects; or the rows of a predicate with one or
            two arguments. They may come in parts.
        path: the file; its suffix says the format, and may be followed by `.gz`, `.zst`
            or `.bz2`.
        format: `nt`, `nq`, `ttl`, `trig` or `rdf`; overrules the suffix.
        predicate: the name of a predicate with one or two arguments; by default the
            name of the file.
        prefixes: for Turtle, TriG and RDF/XML; by default rdf, rdfs, owl, xsd, skos.

    Raises:
        UnknownFormatError: the suffix is not one of RDF.
        NotTriplesError: no row is a triple, or one is not such as XML can hold.

    Warns:
        LeftOutTriplesWarning: some rows are no triples: rules may derive something of
            literals. They are left out.
    """
    file = data_file(path, format=format)
    if not file.is_rdf:
        raise UnknownFormatError(format or file.path.name, rdf=True)
    lines = TripleLines(rows, predicate or file.predicate)
    blocks = iter(lines)
    with file.replace() as sink:
        if file.format in {"nt", "nq"}:  # a triple is a quad of the default graph
            for block in blocks:
                sink.write(block)
        else:
            if file.format == "rdf":
                blocks = map(_for_xml, blocks)
            pyoxigraph.serialize(
                _triples(blocks),
                sink,
                FORMATS[file.format],
                prefixes=dict(PREFIXES if prefixes is None else prefixes),
            )
        lines.require_some()
    lines.tell(file.path.name)


def write_facts(
    rows: pa.Table | TableParts,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  as users say it
    predicate: str | None = None,
    header: bool = False,
    terms: bool = False,
) -> None:
    """Write facts in any format there is; see `write_rdf` and `write_table`."""
    if data_file(path, format=format).is_rdf:
        write_rdf(rows, path, format, predicate=predicate)
    else:
        write_table(rows, path, format=format, header=header, terms=terms)


_NOT_IN_XML = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]"
    # A blank node, at either end of a line, whose label is no name of XML.
    rb"|^_:[0-9]| _:[0-9][^ \"]* \.$"
    # A predicate that does not end with a name of XML.
    rb"|^\S+ <[^>]*[^>A-Za-z_0-9.\-\x80-\xff][0-9.\-]*> ",
    re.MULTILINE,
)


def _for_xml(block: pa.Buffer) -> pa.Buffer:
    """Lines of N-Triples, none of which XML cannot hold."""
    data = block.to_pybytes()
    wrong = _NOT_IN_XML.search(data)
    if wrong is not None:
        line = data[data.rfind(b"\n", 0, wrong.start()) + 1 :].partition(b"\n")[0]
        raise NotTriplesError(
            f"XML cannot hold {line.decode()!r}",
            reason="a text in XML has no control characters; labels of blank nodes "
            "begin with a letter, and predicates end with a name that does",
            help="write `.ttl` or `.nt` instead",
        )
    return block


def _triples(blocks: Iterator[pa.Buffer]) -> Iterator[pyoxigraph.Triple]:
    for block in blocks:
        for quad in pyoxigraph.parse(block.to_pybytes(), FORMATS["nt"], lenient=True):
            yield quad.triple
