"""SPARQL 1.1 over the triples of a knowledge base.

rdflib parses a query and translates it into the algebra of SPARQL; `evaluation` runs
the algebra on tables of solutions (`solutions`), whose basic graph patterns are
answered by the indexes of the knowledge base, a whole pattern at a time (`patterns`).
`updates` turns updates into requests.
"""

from evermat.sparql.errors import SparqlSyntaxError, UnsupportedSparqlError
from evermat.sparql.queries import run_query
from evermat.sparql.updates import is_update, read_update

__all__ = [
    "SparqlSyntaxError",
    "UnsupportedSparqlError",
    "is_update",
    "read_update",
    "run_query",
]
