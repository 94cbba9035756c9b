"""SPARQL 1.1 over the triples of a knowledge base.

rdflib parses a query and translates it into the algebra of SPARQL; `evaluation` runs
the algebra on tables of solutions (`solutions`). Basic graph patterns are answered by
the indexes of the knowledge base, a whole pattern at a time. `requests` reads queries
and updates.
"""

from evermat.sparql.errors import SparqlSyntaxError, UnsupportedSparqlError
from evermat.sparql.requests import is_update, read_update, run_query

__all__ = [
    "SparqlSyntaxError",
    "UnsupportedSparqlError",
    "is_update",
    "read_update",
    "run_query",
]
