"""Axioms of OWL 2 as rules.

`graph` holds the triples of an ontology and notes what is left out; `expressions` says
how members of classes are recognised, and what they gain; `axioms` makes rules of that;
`imports` finds the documents that an ontology imports.
"""
