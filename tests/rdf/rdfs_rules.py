"""RDF and RDFS as rules: the patterns and axioms of RDF 1.1 Semantics.

Literals may be subjects here and blank nodes predicates, which makes them complete.
`recognised` holds for the datatypes whose values are known, `mentioned` for names that
a question is about; `clash` holds where there is a contradiction.
"""

from __future__ import annotations

RHO_DF = "@include rdfs .\n"
"""The core of RDFS, which says nothing about things that no axiom mentions."""

DATATYPES = """
    [?y, a, ?d] :- [_, _, ?y], recognised(?d), ?d = datatype(?y) .
    clash(?x) :- [?x, a, ?d], [?x, a, ?e], disjoint(?d, ?e) .
    clash(?y) :- [_, _, ?y], recognised(xsd:integer), datatype(?y) = xsd:integer,
                 not ?y < 1, not ?y > 0 .

    recognised(xsd:string) .
    recognised(rdf:langString) .
    apart(xsd:string, rdf:langString) .
    apart(xsd:string, xsd:integer) .
    apart(xsd:string, xsd:decimal) .
    apart(rdf:langString, xsd:integer) .
    apart(rdf:langString, xsd:decimal) .
    disjoint(?d, ?e) :- apart(?d, ?e), recognised(?d), recognised(?e) .
"""
"""Literals have types, and nothing has two types without a value in common."""

PROPERTIES = """
    [?p, a, rdf:Property] :- [_, ?p, _] .
"""

RDF_AXIOMS = """
    [rdf:type, a, rdf:Property] .
    [rdf:subject, a, rdf:Property] .
    [rdf:predicate, a, rdf:Property] .
    [rdf:object, a, rdf:Property] .
    [rdf:first, a, rdf:Property] .
    [rdf:rest, a, rdf:Property] .
    [rdf:value, a, rdf:Property] .
    [rdf:nil, a, rdf:List] .
    [?p, a, rdf:Property] :- numbered(?p) .

    % There is no end to rdf:_1, rdf:_2 and so on; only those matter that are used.
    numbered(?p) :- used(?p), ?start = str(rdf:_),
                    regex(str(?p), concat("^", ?start, "[1-9][0-9]*$")) .
    used(?p) :- [_, ?p, _] .
    used(?p) :- mentioned(?p) .
"""

RESOURCES = """
    [?x, a, rdfs:Resource] :- [?x, _, _] .
    [?x, a, rdfs:Resource] :- [_, _, ?x] .
    [?x, a, rdfs:Resource] :- mentioned(?x) .
"""

RDFS_RULES = """
    [?p, rdfs:subPropertyOf, ?p] :- [?p, a, rdf:Property] .
    [?c, rdfs:subClassOf, ?c] :- [?c, a, rdfs:Class] .
    [?c, rdfs:subClassOf, rdfs:Resource] :- [?c, a, rdfs:Class] .
    [?p, rdfs:subPropertyOf, rdfs:member] :- [?p, a, rdfs:ContainerMembershipProperty] .
    [?d, rdfs:subClassOf, rdfs:Literal] :- [?d, a, rdfs:Datatype] .
    [?d, a, rdfs:Datatype] :- recognised(?d) .

    [rdf:type, rdfs:domain, rdfs:Resource] .
    [rdfs:domain, rdfs:domain, rdf:Property] .
    [rdfs:range, rdfs:domain, rdf:Property] .
    [rdfs:subPropertyOf, rdfs:domain, rdf:Property] .
    [rdfs:subClassOf, rdfs:domain, rdfs:Class] .
    [rdf:subject, rdfs:domain, rdf:Statement] .
    [rdf:predicate, rdfs:domain, rdf:Statement] .
    [rdf:object, rdfs:domain, rdf:Statement] .
    [rdfs:member, rdfs:domain, rdfs:Resource] .
    [rdf:first, rdfs:domain, rdf:List] .
    [rdf:rest, rdfs:domain, rdf:List] .
    [rdfs:seeAlso, rdfs:domain, rdfs:Resource] .
    [rdfs:isDefinedBy, rdfs:domain, rdfs:Resource] .
    [rdfs:comment, rdfs:domain, rdfs:Resource] .
    [rdfs:label, rdfs:domain, rdfs:Resource] .
    [rdf:value, rdfs:domain, rdfs:Resource] .

    [rdf:type, rdfs:range, rdfs:Class] .
    [rdfs:domain, rdfs:range, rdfs:Class] .
    [rdfs:range, rdfs:range, rdfs:Class] .
    [rdfs:subPropertyOf, rdfs:range, rdf:Property] .
    [rdfs:subClassOf, rdfs:range, rdfs:Class] .
    [rdf:subject, rdfs:range, rdfs:Resource] .
    [rdf:predicate, rdfs:range, rdfs:Resource] .
    [rdf:object, rdfs:range, rdfs:Resource] .
    [rdfs:member, rdfs:range, rdfs:Resource] .
    [rdf:first, rdfs:range, rdfs:Resource] .
    [rdf:rest, rdfs:range, rdf:List] .
    [rdfs:seeAlso, rdfs:range, rdfs:Resource] .
    [rdfs:isDefinedBy, rdfs:range, rdfs:Resource] .
    [rdfs:comment, rdfs:range, rdfs:Literal] .
    [rdfs:label, rdfs:range, rdfs:Literal] .
    [rdf:value, rdfs:range, rdfs:Resource] .
    [rdf:reifies, rdfs:range, rdfs:Proposition] .

    [rdf:Alt, rdfs:subClassOf, rdfs:Container] .
    [rdf:Bag, rdfs:subClassOf, rdfs:Container] .
    [rdf:Seq, rdfs:subClassOf, rdfs:Container] .
    [rdfs:ContainerMembershipProperty, rdfs:subClassOf, rdf:Property] .
    [rdfs:isDefinedBy, rdfs:subPropertyOf, rdfs:seeAlso] .
    [rdfs:Datatype, rdfs:subClassOf, rdfs:Class] .
    [?p, a, rdfs:ContainerMembershipProperty] :- numbered(?p) .
    [?p, rdfs:domain, rdfs:Resource] :- numbered(?p) .
    [?p, rdfs:range, rdfs:Resource] :- numbered(?p) .
"""

RDF = DATATYPES + PROPERTIES + RDF_AXIOMS
RDFS_OF_WHAT_HAS_A_TYPE = DATATYPES + RDF_AXIOMS + RHO_DF + RDFS_RULES
RDFS = RDFS_OF_WHAT_HAS_A_TYPE + PROPERTIES + RESOURCES
