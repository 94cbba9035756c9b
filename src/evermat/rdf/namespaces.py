"""The namespaces that RDF and OWL are written in."""

from __future__ import annotations

from evermat.lang.lexer import RDF, STANDARD_PREFIXES
from evermat.values import XSD

RDFS = STANDARD_PREFIXES["rdfs"]
OWL = STANDARD_PREFIXES["owl"]
SKOS = "http://www.w3.org/2004/02/skos/core#"
SWRL = "http://www.w3.org/2003/11/swrl#"

PREFIXES = {**STANDARD_PREFIXES, "skos": SKOS}
"""The usual prefixes and what they stand for."""

__all__ = ["OWL", "PREFIXES", "RDF", "RDFS", "SKOS", "SWRL", "XSD"]
