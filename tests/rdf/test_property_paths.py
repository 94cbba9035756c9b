"""Property paths of SPARQL as recursive rules, on the cases of the W3C.

All 33 are in scope. Rules derive sets: where SPARQL gives an answer once for every way
to it, answers are compared without repetition.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat import KnowledgeBase
from evermat.values import Constant, Kind
from rdf.path_rules import PathQuery, path_query
from rdf.published_cases import (
    NO_DATA,
    PathCase,
    Row,
    constant_of,
    parameters,
    path_cases,
    store_of,
    triples,
)
from tracked import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CASES = path_cases("property-paths/manifest.ttl")
SEVERAL_GRAPHS = {"pp06", "pp07", "pp34", "pp35"}

Answers = set[frozenset[tuple[str, Constant]]]
"""Each answer is what variables stand for; the one without any is yes."""


@NO_DATA
def test_all_cases_are_there() -> None:
    assert len(CASES) == 33
    assert {case.name for case in CASES if case.graphs} == SEVERAL_GRAPHS


@pytest.mark.parametrize("case", parameters(CASES))
def test_paths_as_rules_give_the_published_answers(
    case: PathCase, engine_name: str
) -> None:
    query = _path_query(case)
    kb = KnowledgeBase(query.rules, engine=engine_name)
    if case.data is not None:
        kb.insert("triple", triples(case.data))
    for graph in case.graphs:
        name = Constant(Kind.IRI, graph.as_uri())
        kb.insert("quad", [(name, *row) for row in triples(graph)])
    assert _answers(kb, query) == _published(case.result)


@pytest.mark.parametrize(
    ("engine", "modules"),
    [("reference", "off"), ("embedded", "on"), ("embedded", "off")],
)
@pytest.mark.parametrize("case", parameters(case for case in CASES if case.data))
def test_paths_are_kept_while_triples_come_and_go(
    case: PathCase, engine: str, modules: str
) -> None:
    """After each update the answers are those of another library, from scratch."""
    assert case.data is not None
    random = Random(case.name)  # noqa: S311  not for secrets
    query = _path_query(case)
    sparql = case.query.read_text("utf-8")
    kb = KnowledgeBase(query.rules, engine=engine, modules=modules == "on")
    given = triples(case.data)
    pool = sorted({*given, *_more_triples(given, random)}, key=str)
    # pyoxigraph knows paths of no length only between names that are in the graph.
    named = [row[0] for row in kb.facts("node", "explicit").constants()]
    given += [(name, _name("mentioned"), name) for name in named]
    kb.insert("triple", given)
    graph = set(given)
    for algorithm in (*ALGORITHMS, *ALGORITHMS):
        change = set(random.sample(pool, len(pool) // 3))
        removed, added = change & graph, change - graph
        kb.update(
            insert={"triple": sorted(added, key=str)},
            delete={"triple": sorted(removed, key=str)},
            algorithm=algorithm,
        )
        graph ^= change
        assert _answers(kb, query) == _computed_elsewhere(sparql, graph), algorithm


PROPERTIES = st.sampled_from([":p", ":q"])
PATHS = st.recursive(
    PROPERTIES
    | st.lists(PROPERTIES | PROPERTIES.map("^{}".format), min_size=1, max_size=2).map(
        lambda members: f"!({'|'.join(members)})"
    ),
    lambda parts: st.one_of(
        st.builds("({})/({})".format, parts, parts),
        st.builds("({})|({})".format, parts, parts),
        st.builds("^({})".format, parts),
        st.builds("({}){}".format, parts, st.sampled_from("*+?")),
    ),
    max_leaves=4,
)
TRIPLES = st.frozensets(
    st.builds(
        lambda *names: tuple(map(_name, names)),
        st.sampled_from("abcd"),
        st.sampled_from("pq"),
        st.sampled_from("abcd"),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=20)
@given(
    path=PATHS,
    ends=st.sampled_from(["?x ({}) ?y", "?x ({}) ?x", ":a ({}) ?y", "?x ({}) :b"]),
    changes=st.lists(
        st.tuples(TRIPLES, st.sampled_from(ALGORITHMS)), min_size=3, max_size=6
    ),
    modules=st.booleans(),
)
def test_random_paths_are_kept_while_triples_come_and_go(
    path: str, ends: str, changes: list[tuple[frozenset[Row], str]], *, modules: bool
) -> None:
    sparql = f"PREFIX : <http://example/> SELECT * {{ {ends.format(path)} }}"
    query = path_query(sparql, "http://example/")
    kb = KnowledgeBase(query.rules, engine="embedded", modules=modules)
    graph: set[Row] = {(_name(name), _name("mentioned"), _name(name)) for name in "ab"}
    kb.insert("triple", sorted(graph, key=str))
    for change, algorithm in changes:
        kb.update(
            insert={"triple": sorted(change - graph, key=str)},
            delete={"triple": sorted(change & graph, key=str)},
            algorithm=algorithm,
        )
        graph ^= change
        assert _answers(kb, query) == _computed_elsewhere(sparql, graph)


def _path_query(case: PathCase) -> PathQuery:
    return path_query(case.query.read_text("utf-8"), case.query.as_uri())


def _more_triples(given: list[Row], random: Random) -> list[Row]:
    """Triples over the same names, so that there are new paths, and round trips."""
    subjects = sorted({row[0] for row in given}, key=str) or [_name("s")]
    predicates = sorted({row[1] for row in given}, key=str) or [_name("p")]
    objects = sorted({row[2] for row in given}, key=str) or [_name("o")]
    return [
        (random.choice(subjects), random.choice(predicates), random.choice(found))
        for found in (objects, subjects)
        for _ in range(8)
    ]


def _name(local: str) -> Constant:
    return Constant(Kind.IRI, f"http://example/{local}")


def _answers(kb: KnowledgeBase, query: PathQuery) -> Answers:
    found = kb.query(query.question)
    wanted = query.variables or found.columns
    return {
        frozenset(
            (name, term)
            for name, term in zip(found.columns, row, strict=True)
            if name in wanted
        )
        for row in found.constants()
    }


def _published(path: Path) -> Answers:
    return _read(
        pyoxigraph.parse_query_results(
            path=path, format=pyoxigraph.QueryResultsFormat.XML
        )
    )


def _computed_elsewhere(sparql: str, graph: Iterable[Row]) -> Answers:
    return _read(store_of(graph).query(sparql))


def _read(
    results: pyoxigraph.QuerySolutions
    | pyoxigraph.QueryBoolean
    | pyoxigraph.QueryTriples,
) -> Answers:
    if isinstance(results, pyoxigraph.QueryBoolean):
        return {frozenset()} if results else set()
    assert isinstance(results, pyoxigraph.QuerySolutions)
    names = [variable.value for variable in results.variables]
    return {
        frozenset(
            (name, constant_of(term))
            for name, term in zip(names, solution, strict=True)
            if term is not None
        )
        for solution in results
    }
