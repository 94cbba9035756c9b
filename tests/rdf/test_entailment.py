"""RDF and RDFS as rules, on the entailment cases of the W3C.

A positive case has a conclusion that is entailed, or a premise that is inconsistent; a
negative case has one that is not. Blank nodes of conclusions stand for anything. Only
cases that their authors still list are run.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from evermat import IRI, KnowledgeBase
from evermat.rdf import RdfSyntaxError, read_rdf
from evermat.values import Constant, Kind
from rdf.published_cases import (
    NO_DATA,
    Entailment,
    Row,
    entailments,
    parameters,
    triples,
)
from rdf.rdfs_rules import RDF, RDFS
from tracked import ALGORITHMS

REGIMES = {"simple": "@declare clash(any) .", "RDF": RDF, "RDFS": RDFS}

RDF_11 = entailments("rdf-mt/manifest.ttl")
UNAPPROVED = entailments("rdf-mt/az-tests/manifest.ttl")
RDF_12 = entailments("rdf12-semantics/manifest.ttl")
CASES = [*RDF_11, *UNAPPROVED, *RDF_12]

AS_WRITTEN = "literals of this datatype are kept as they are written"
WHITE_SPACE = "white space around a number is no part of it"
NO_VALUE = "it takes values that nothing mentions, or how many there are"
TRIPLE_TERMS = "triples as terms are refused"
OUT_OF_SCOPE = {
    "datatypes-semantic-equivalence-between-datatypes": "`10` and `10.0` differ",
    "float-round-same": AS_WRITTEN,
    "float-infinity": AS_WRITTEN,
    "json-object-unordered": AS_WRITTEN,
    "json-round-same": AS_WRITTEN,
    "json-infinity": AS_WRITTEN,
    "rdfs-entailment-test001": AS_WRITTEN,
    "xmlsch-02-whitespace-facet-1": WHITE_SPACE,
    "xmlsch-02-whitespace-facet-2": WHITE_SPACE,
    "xmlsch-02-whitespace-facet-4": WHITE_SPACE,
    "ill-formed-string": "strings may contain U+0000",
    "langstring-not-subclassof-string": NO_VALUE,
    "inconsistent-recognizing-integer": NO_VALUE,
    "only-one-class": NO_VALUE,
    "only-one-property": NO_VALUE,
    "same-as-one": "its files are not there",
    "all-identical-triple-terms-are-the-same": TRIPLE_TERMS,
    "triple-terms-no-spurious": TRIPLE_TERMS,
    "bnodes-in-triple-term-subject": TRIPLE_TERMS,
    "bnodes-in-triple-term-object": TRIPLE_TERMS,
    "bnodes-in-triple-term-subject-and-object": TRIPLE_TERMS,
    "bnodes-in-triple-term-subject-and-object-fail": TRIPLE_TERMS,
    "same-bnode-same-triple-term": TRIPLE_TERMS,
    "different-bnodes-same-triple-term": TRIPLE_TERMS,
    "constrained-bnodes-in-triple-term-subject": TRIPLE_TERMS,
    "constrained-bnodes-in-triple-term-object": TRIPLE_TERMS,
    "constrained-bnodes-in-triple-term-fail": TRIPLE_TERMS,
    "constrained-bnodes-on-literal": TRIPLE_TERMS,
    "malformed-literal": TRIPLE_TERMS,
    "opaque-literal": TRIPLE_TERMS,
    "opaque-language-string": TRIPLE_TERMS,
    "opaque-dir-language-string": TRIPLE_TERMS,
    "triple-term-not-asserted": TRIPLE_TERMS,
    "annotated-asserted": TRIPLE_TERMS,
    "annotation": TRIPLE_TERMS,
    "annotation-unfolded": TRIPLE_TERMS,
    "triple-terms-propositions": TRIPLE_TERMS,
}
"""Cases that are not expected to come out right, and why."""

MISSING_FILES = {"same-as-one"}


@NO_DATA
def test_all_cases_are_there() -> None:
    assert (len(RDF_11), len(UNAPPROVED), len(RDF_12)) == (48, 14, 29)
    assert set(OUT_OF_SCOPE) <= {case.name for case in CASES}


@pytest.mark.parametrize(
    "case", parameters(case for case in CASES if case.name not in OUT_OF_SCOPE)
)
def test_what_follows_is_derived_and_nothing_else(
    case: Entailment, engine_name: str
) -> None:
    assert _is_entailed(case, engine_name) == case.is_positive


@pytest.mark.parametrize(
    "case",
    parameters(
        case
        for case in CASES
        if case.name in OUT_OF_SCOPE and case.name not in MISSING_FILES
    ),
)
def test_what_is_out_of_scope_is_refused_or_comes_out_wrong(case: Entailment) -> None:
    """Nothing is derived that should not be, but for numbers among white space."""
    if OUT_OF_SCOPE[case.name] != TRIPLE_TERMS:
        assert case.is_positive or OUT_OF_SCOPE[case.name] == WHITE_SPACE
        assert _is_entailed(case, "reference") != case.is_positive
        return
    files = [file for file in (case.premise, case.conclusion) if file is not None]
    with pytest.raises(RdfSyntaxError, match="triples as terms are not supported"):
        _ = [read_rdf(file) for file in files]


@NO_DATA
@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_closures_are_kept_while_premises_come_and_go(engine: str) -> None:
    """After each update all facts are those of a computation from scratch."""
    premises = [triples(file) for file in sorted({case.premise for case in RDF_11})]
    kb = KnowledgeBase(RDFS, engine=engine, equality="off")
    kb.insert("triple", [row for premise in premises[:8] for row in premise])
    present = dict.fromkeys(range(8))
    for turn, algorithm in enumerate(ALGORITHMS):
        leaving = [turn, 7 + turn]
        coming = [8 + turn, 15 + turn]
        present = dict.fromkeys([*present, *coming])
        for each in leaving:
            present.pop(each, None)
        rows = {row for each in present for row in premises[each]}
        kb.update(
            insert={"triple": [row for each in coming for row in premises[each]]},
            delete={
                "triple": [
                    row for each in leaving for row in premises[each] if row not in rows
                ]
            },
            algorithm=algorithm,
        )
        assert _facts(kb) == _facts_from_scratch(frozenset(rows)), algorithm


@lru_cache
def _facts_from_scratch(rows: frozenset[Row]) -> dict[str, set[Row]]:
    kb = KnowledgeBase(RDFS, engine="embedded", equality="off")
    kb.insert("triple", list(rows))
    return _facts(kb)


def _facts(kb: KnowledgeBase) -> dict[str, set[Row]]:
    return {name: set(kb.facts(name).constants()) for name in ("triple", "clash")}


def _is_entailed(case: Entailment, engine: str) -> bool:
    kb = KnowledgeBase(REGIMES[case.regime], engine=engine, equality="off")
    conclusion = [] if case.conclusion is None else triples(case.conclusion)
    kb.load(
        {
            "triple": triples(case.premise),
            "recognised": [(IRI(name),) for name in sorted(case.recognised)],
            "mentioned": [(term,) for row in conclusion for term in row],
        }
    )
    if case.conclusion is None:
        return kb.count("clash") > 0
    atoms = [f"[{', '.join(map(_term, row))}]" for row in conclusion]
    return len(kb.query(", ".join(atoms))) > 0


def _term(constant: Constant) -> str:
    if constant.kind != Kind.BLANK:
        return str(constant)
    return "?" + re.sub(r"\W", "_", constant.text)
