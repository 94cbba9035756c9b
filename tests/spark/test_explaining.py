"""What `explain_plan` tells about plans on Spark."""

from __future__ import annotations

import pytest

import evermat
from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    first(?x, ?y) :- reach(?x, ?y), start(?x) .
    sort(?x, "a") :- kind(?x, "b") .
    sort(?x, "c") :- kind(?x, "d") .
"""


def test_plans_say_where_facts_are_and_how_rounds_are_run() -> None:
    engine = SparkEngine(small=7)
    kb = evermat.KnowledgeBase(RULES, engine=engine, modules=False)
    kb.load({"edge": [(1, 2), (2, 3)], "start": [(1,)], "kind": [(1, "b")]})
    told = kb.explain_plan()
    for words in (
        "distributed over the cluster",
        "sets of up to 7 facts on the driver",
        "partitions by all columns",
        "checkpoint: each set on the cluster",
        "on the driver (at most 1,000,000), 0 on the cluster",
        "to their end inside tasks, facts divided (reach by column 1); tasks read edge",
        "updates: round by round",
        "2 rules in one: they differ in constants only",
        "join reach (all) on ?0, 3 rows, shuffle",
    ):
        assert words in told, told
    both = "reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) ."
    kb = evermat.KnowledgeBase(both, engine=SparkEngine(), modules=False)
    assert "recursive rules: round by round" in kb.explain_plan()


def test_jobs_are_named_by_what_they_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SparkEngine(small=0)
    context = type(engine.cluster.session.sparkContext)
    named: list[str] = []
    set_property = context.setLocalProperty

    def noting(self: object, key: str, value: str | None) -> None:
        if key == "spark.job.description" and value is not None:
            named.append(value)
        set_property(self, key, value)  # type: ignore[arg-type]

    monkeypatch.setattr(context, "setLocalProperty", noting)
    kb = evermat.KnowledgeBase(RULES, engine=engine, modules=False)
    kb.load({"edge": [(1, 2), (2, 3)], "start": [(1,)], "kind": [(1, "b")]})
    kb.delete("edge", [(1, 2)])
    told = "\n".join(named)
    assert "evermat: step 1: " in told
    assert "reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z)" in told
    assert "evermat: commit" in told
    assert engine.cluster.session.sparkContext.getLocalProperty(
        "spark.job.description"
    ) in (None, "")
