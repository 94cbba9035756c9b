"""RDF in and out."""

from evermat.rdf.namespaces import OWL, PREFIXES, RDF, RDFS, SKOS, XSD
from evermat.rdf.ontology import IgnoredAxiomsWarning, Ontology, read_ontology
from evermat.rdf.reading import RdfSyntaxError, rdf_batches, read_dataset, read_rdf
from evermat.rdf.writing import write_facts, write_rdf

__all__ = [
    "OWL",
    "PREFIXES",
    "RDF",
    "RDFS",
    "SKOS",
    "XSD",
    "IgnoredAxiomsWarning",
    "Ontology",
    "RdfSyntaxError",
    "rdf_batches",
    "read_dataset",
    "read_ontology",
    "read_rdf",
    "write_facts",
    "write_rdf",
]
