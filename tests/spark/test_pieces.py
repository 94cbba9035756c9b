"""Rules over one large set and small ones: tasks run them, each over a piece."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from evermat import KnowledgeBase
from evermat.algebra import Column, Pattern, Query
from evermat.engines import make_engine
from evermat.engines.spark import evaluation, pieces
from evermat.engines.spark.inside_tasks import Work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evermat.algebra import Engine
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.reading import Reader

pytestmark = pytest.mark.spark

RULES = """
    @prefix : <http://example/> .
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z), node(?z) .
    near(?x, "next") :- edge(?x, ?y), stop(?y) .
    near(?x, "here") :- edge(?y, ?x), stop(?x) .
    near(?x, ?k) :- near(?y, ?k), edge(?x, ?y) .
    far(?x, ?y, ?z) :- reach(?x, ?y), edge(?y, ?z), not edge(?x, ?z) .
    calm(?x) :- node(?x), not near(?x, "next") .
    loop(?x) :- reach(?x, ?x) .
    [?x, a, :Odd] :- [?x, :odd, ?y] .
    [?x, a, :Even] :- [?x, :even, ?y] .
    [?x, a, :Number] :- [?x, a, :Odd] .
    [?x, a, :Number] :- [?x, a, :Even] .
    [?y, :before, ?x] :- [?x, :odd, ?y], [?y, a, :Even] .
"""
DERIVED = ("reach", "near", "far", "calm", "loop")
NODES = 9
MANY = 100_000
SOME = 20
"""Rows to be sent that are too few for some of the rules, and enough for others."""


@pytest.fixture(name="shares", autouse=True)
def _shares(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """For each call how many queries tasks have run, and how many are left."""
    shares: list[tuple[int, int]] = []

    class Spy(pieces.Pieces):
        def __init__(
            self, cluster: Cluster, reader: Reader, queries: Sequence[Query]
        ) -> None:
            super().__init__(cluster, reader, queries)
            shares.append((len(queries) - len(self.rest), len(self.rest)))

    monkeypatch.setattr(pieces, "MOST_SENT", MANY)
    monkeypatch.setattr(evaluation, "Pieces", Spy)
    return shares


def engine() -> Engine:
    return make_engine("spark", driver_facts=0, small=0)


def facts(random_: random.Random) -> dict[str, list[tuple[object, ...]]]:
    return {
        "edge": sorted(random_edges(random_, 11)),
        "node": [(node,) for node in range(NODES)],
        "stop": [(4,), (5,)],
    }


def random_edges(random_: random.Random, count: int) -> set[tuple[int, int]]:
    return {(random_.randrange(NODES), random_.randrange(NODES)) for _ in range(count)}


def triples() -> str:
    lines = (
        f"<http://example/{at}> <http://example/{('even', 'odd')[at % 2]}> "
        f"<http://example/{at + 1}> ."
        for at in range(NODES)
    )
    return "\n".join(lines)


def state(base: KnowledgeBase) -> dict[str, list[str]]:
    names = (*DERIVED, "triple")
    return {name: sorted(map(repr, base.counters(name))) for name in names}


REPEATS = pytest.mark.slow
"""Ten seconds each, for a combination of what the others show one by one."""


@pytest.mark.parametrize(
    ("algorithm", "sent"),
    [
        ("dred-c", MANY),
        ("bf-c", SOME),
        ("dred-c", 0),
        pytest.param("bf-c", MANY, marks=REPEATS),
        pytest.param("dred-c", SOME, marks=REPEATS),
        pytest.param("bf-c", 0, marks=REPEATS),
    ],
)
def test_as_on_the_reference_engine(
    algorithm: str,
    sent: int,
    shares: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Facts and counters are the same, whoever runs which of the rules."""
    monkeypatch.setattr(pieces, "MOST_SENT", sent)
    random_ = random.Random(f"{algorithm} {sent}")  # noqa: S311  no secret
    given = facts(random_)
    one = KnowledgeBase(RULES, engine=engine(), modules=False)
    other = KnowledgeBase(RULES, engine="reference", modules=False)
    numbers = tmp_path / "numbers.nt"
    numbers.write_text(triples())
    for base in (one, other):
        base.load(given, rdf=numbers)
    assert state(one) == state(other)
    assert any(taken for taken, _ in shares)
    assert any(rest for _, rest in shares) == (sent < MANY)
    gone = random_.sample(given["edge"], 3)
    come = sorted(random_edges(random_, 3))
    for base in (one, other):
        base.update(delete={"edge": gone}, insert={"edge": come}, algorithm=algorithm)
    assert state(one) == state(other)


def test_constants_that_only_rules_have_are_made_known() -> None:
    base = KnowledgeBase('kind(?x, "node") :- node(?x) .', engine=engine())
    base.load({"node": [(1,), (2,)]})
    assert base.facts("kind").to_list() == [(1, "node"), (2, "node")]


def test_facts_without_arguments_are_joined_by_spark(
    shares: list[tuple[int, int]],
) -> None:
    rules = "open(?x) :- door(?x), day() . day() :- sun(?x) ."
    base = KnowledgeBase(rules, engine=engine(), modules=False)
    base.load({"door": [(1,), (2,)], "sun": [(1,)]})
    assert base.facts("open").to_list() == [(1,), (2,)]
    assert not any(taken for taken, _ in shares)


def test_plans_tell_of_pieces() -> None:
    rules = "two(?x) :- edge(?x, ?y), stop(?y) . three(?x) :- edge(?x, ?y), ?y > 2 ."
    base = KnowledgeBase(rules, engine=engine(), modules=False)
    base.load({"edge": [(1, 2), (2, 3)], "stop": [(3,)]})
    told = base.explain_plan()
    assert "inside tasks, over pieces of edge, with rows of stop sent to all" in told
    assert "compute" in told


def test_what_is_sent_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared = []
    clear = pieces.Pieces.clear

    def spy(self: pieces.Pieces) -> None:
        cleared.append(self)
        clear(self)

    monkeypatch.setattr(pieces.Pieces, "clear", spy)
    base = KnowledgeBase("two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .", engine=engine())
    base.load({"edge": [(1, 2), (2, 3)]})
    assert base.facts("two").to_list() == [(1, 3)]
    assert cleared


def test_a_large_piece_is_joined_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits derive the same fact more than once, and Spark adds them up."""
    monkeypatch.setattr(pieces, "AT_ONCE", 2)
    first = Pattern("node", (Column(0),))
    edge = Pattern("edges", (Column(0), Column(1)))
    work = Work(
        queries=(Query(first, (edge,), column_count=2),),
        names={0: "edges"},
        arities={"edges": 2, "node": 1},
        heads={"node": 7},
        sides={},
        width=1,
    )
    rows = {"tag": [0] * 5, "c0": [1, 1, 1, 2, 1], "c1": [1, 2, 3, 4, 5]}
    batches = pa.table(rows).to_batches(max_chunksize=1)
    found = [
        (each["tag"], each["c0"], each["n"])
        for batch in pieces.run_pieces(_Sent(work), batches)  # type: ignore[arg-type]
        for each in batch.to_pylist()
    ]
    assert sorted(found) == [(7, 1, 1), (7, 1, 1), (7, 1, 2), (7, 2, 1)]


class _Sent:
    def __init__(self, value: Work) -> None:
        self.value = value
