"""The documents of an ontology: the file itself, and the local files that it imports.

Nothing is read from the network. A *catalogue* says which file an imported IRI is: a
mapping, a folder, or an OASIS XML catalogue such as Protégé's `catalog-v001.xml`, which
is used without being asked for where it lies beside the ontology.

Functional syntax (`.ofn`), OWL/XML (`.owx`), Manchester syntax (`.omn`) and OBO
(`.obo`) are read by py-horned-owl, which writes them as RDF.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
import xml.parsers.expat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal
from urllib.parse import unquote, urlparse

import pyoxigraph

from evermat.columns import constants
from evermat.errors import EvermatError
from evermat.io.files import FileMissingError, data_file
from evermat.rdf.namespaces import OWL
from evermat.rdf.reading import read_rdf
from evermat.rdf.untrusted_input import require_safe_xml
from evermat.runtime.input_limits import require_allowed
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.rdf.owl.graph import Triple

Syntax = Literal["ofn", "owx", "omn", "obo"]

CATALOGUE = "catalog-v001.xml"
"""What editors of ontologies call the catalogue of a folder."""

SYNTAXES: dict[str, Syntax] = {
    ".ofn": "ofn",
    ".owx": "owx",
    ".omn": "omn",
    ".obo": "obo",
}
"""Suffixes of ontologies that are no RDF, and what py-horned-owl calls them."""

_IMPORTS = OWL + "imports"
_ENTRY = "{urn:oasis:names:tc:entity:xmlns:xml:catalog}uri"


class OntologyFormatError(EvermatError, ValueError):
    """An ontology, or a catalogue of ontologies, that cannot be read."""

    code: ClassVar[str] = "EM750"


# -------------------------------------------------------------------------- catalogues


def read_catalogue(given: Mapping[str, str | Path] | str | Path) -> dict[str, Path]:
    """Which file each IRI is.

    Args:
        given: a mapping, the path of an XML catalogue, or a folder: either with an XML
            catalogue, or else all its ontologies by their IRIs.
    """
    if isinstance(given, Mapping):
        return {iri: Path(path) for iri, path in given.items()}
    path = Path(given)
    if not path.is_dir():
        return _xml_catalogue(path)
    if (path / CATALOGUE).exists():
        return _xml_catalogue(path / CATALOGUE)
    found = {}
    for file in sorted(path.iterdir()):
        if file.is_file() and (file.suffix in SYNTAXES or _is_rdf(file)):
            for subject, predicate, value in read_document(file):
                if predicate.text.endswith("#type") and value.text == OWL + "Ontology":
                    found[subject.text] = file
    return found


def _is_rdf(path: Path) -> bool:
    try:
        return data_file(path).is_rdf
    except EvermatError:
        return False


def _xml_catalogue(path: Path) -> dict[str, Path]:
    try:
        data = path.read_bytes()
        require_safe_xml(path.name, data)
        root = ET.fromstring(data)  # noqa: S314  what would harm is refused above
    except FileNotFoundError:
        raise FileMissingError(path) from None
    except (OSError, xml.parsers.expat.ExpatError, ET.ParseError) as error:
        raise OntologyFormatError(
            f"`{path}` is no XML catalogue: {error}",
            help="give a mapping from IRIs to paths, or a folder of ontologies",
        ) from error
    places = {}
    for entry in root.iter(_ENTRY):
        iri, place = entry.get("name"), entry.get("uri")
        if iri and place:
            file = path.parent / unquote(urlparse(place).path)
            require_allowed(file, path.parent)
            places[iri] = file
    return places


# --------------------------------------------------------------------------- documents


def read_documents(
    path: Path, catalogue: Mapping[str, Path], base: str | None = None
) -> Iterator[tuple[Triple, str]]:
    """The triples of an ontology and of what it imports, each with its document."""
    if not catalogue and (path.parent / CATALOGUE).exists():
        catalogue = _xml_catalogue(path.parent / CATALOGUE)
    waiting, seen = [path], {path.resolve()}
    while waiting:
        document = waiting.pop(0)
        for triple in read_document(document, base):
            imported = catalogue.get(triple[2].text)
            if triple[1].text == _IMPORTS and imported is not None:
                if imported.resolve() not in seen:
                    seen.add(imported.resolve())
                    waiting.append(imported)
                continue
            yield triple, document.name


def read_document(path: Path, base: str | None = None) -> Iterator[Triple]:
    """The triples of one document."""
    syntax = SYNTAXES.get(path.suffix)
    if syntax is None:
        columns = map(constants, read_rdf(path, base=base).columns)
        yield from zip(*columns, strict=True)
        return
    for quad in pyoxigraph.parse(_as_rdf(path, syntax), pyoxigraph.RdfFormat.RDF_XML):
        terms = quad.subject, quad.predicate, quad.object
        subject, predicate, value = map(constant, terms)
        yield subject, predicate, value


_PREFIX = re.compile(
    rb"""@?prefix\s+([\w.\-]*):\s*<([^>\s]*)>|xmlns:([\w.\-]+)\s*=\s*["']([^"'&]*)["']""",
    re.IGNORECASE,
)
_BEGINNING = 1 << 16


def prefixes_of(path: Path) -> dict[str, str]:
    """The prefixes that a document declares at its beginning."""
    if path.suffix in SYNTAXES:
        return {}
    with data_file(path).open() as stream:
        beginning = stream.read(_BEGINNING)
    found = {}
    for turtle, iri, xml_name, xml_iri in _PREFIX.findall(beginning):
        name, text = (turtle or xml_name).decode(), (iri or xml_iri).decode()
        if ":" in text:
            found[name] = text
    return found


def _as_rdf(path: Path, syntax: Syntax) -> str:
    """An ontology in another syntax, as RDF/XML."""
    try:
        import pyhornedowl  # noqa: PLC0415  an extra
    except ImportError:
        raise OntologyFormatError(
            f"`{path.name}` needs the package `py-horned-owl`",
            help='pip install "evermat[owl]"',
        ) from None
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissingError(path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise OntologyFormatError(f"`{path}` cannot be read: {error}") from error
    try:
        ontology = pyhornedowl.open_ontology_from_string(text, syntax)
        return str(ontology.save_to_string("owl"))
    except Exception as error:
        raise OntologyFormatError(
            f"`{path}` is no ontology in this syntax: {error}",
            help="save it as Turtle or RDF/XML",
        ) from error
