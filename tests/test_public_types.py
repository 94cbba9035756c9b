"""The public names as type checkers see them: this file is checked with `--strict`."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import pandas as pd
import polars as pl
import pyarrow as pa

from evermat import (
    IRI,
    Budget,
    Change,
    Explanation,
    KnowledgeBase,
    Result,
    Rule,
    Step,
    Value,
)
from evermat.rdf import Ontology, read_ontology

if TYPE_CHECKING:
    from pathlib import Path


def test_a_knowledge_base_is_typed() -> None:
    steps: list[Step] = []
    kb = KnowledgeBase(
        "q(?x) :- p(?x) .", budget=Budget(rounds=30), progress=steps.append
    )
    assert_type(kb.load({"p": [(1,), ("a",)]}), Change)
    assert_type(kb.insert("p", [(2,)]), Change)
    assert_type(kb.delete("p", kb.query("p(?x), ?x = 2")), Change)
    assert_type(kb.plan(add_rules="r(?x) :- q(?x) ."), Change)
    with kb.transaction() as transaction:
        transaction.insert("p", [(IRI("http://example.org/a"),)])
    assert_type(transaction.change, Change)
    assert_type(kb.explain("q(1)"), Explanation)
    assert_type(kb.rules, tuple[Rule, ...])
    assert_type(kb.contains("q", (1,)), bool)
    assert_type(steps[0].new_facts, int)
    assert kb.count("q") == 3


def test_results_are_typed() -> None:
    kb = KnowledgeBase("p(1) .")
    result = kb.query("p(?x)")
    assert_type(result, Result)
    assert_type(result.to_list(), list[tuple[Value, ...]])
    assert_type(result.to_arrow(), pa.Table)
    assert_type(result.to_pandas(), pd.DataFrame)
    assert_type(result.to_polars(), pl.DataFrame)
    assert_type(kb.stats()["predicates"]["p"]["facts"], int)


def test_ontologies_are_typed(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text("<http://e/a> <http://e/b> <http://e/c> .")
    ontology = read_ontology(tmp_path / "o.ttl")
    assert_type(ontology, Ontology)
    assert not ontology.has_axioms
    assert KnowledgeBase(ontology).rules == ontology.rules
