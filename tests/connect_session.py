"""A knowledge base over Spark Connect: there is no Java in the process of the user.

usage: python connect_session.py STATE
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import evermat
from evermat.engines import make_engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = """
    two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
    lonely(?x) :- node(?x), not edge(?x, ?y) .
    next(?x, ?y) :- number(?x), ?y = ?x + 1 .
"""
EDGES = [(at, at + 1) for at in range(30)]
NODES = [*((at,) for at in range(40)), ("a",)]
NUMBERS = [(at,) for at in range(20)]
DELETED = [(7, 8)]
INSERTED = [("a", "b"), ("b", 3)]


def contents(kb: evermat.KnowledgeBase) -> dict[str, Any]:
    return {
        name: sorted(map(list, kb.counters(name)), key=str) for name in kb.predicates
    }


def main(state: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415  after the variable

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    try:
        found = told(spark, state)
    finally:
        spark.stop()  # or the server goes on
    sys.stdout.write(json.dumps(found) + "\n")


def told(spark: SparkSession, state: str) -> dict[str, Any]:
    """What a knowledge base in a session comes to."""

    def engine() -> Any:
        return make_engine("spark", session=spark, driver_facts=0, small=4)

    kb = evermat.KnowledgeBase(RULES, engine=engine(), state=state)
    kb.insert("edge", spark.createDataFrame(EDGES, "x long, y long"))
    kb.insert("node", NODES)
    kb.insert("number", NUMBERS)
    kb = evermat.KnowledgeBase.open(state, engine=engine())
    kb.update(delete={"edge": DELETED}, insert={"edge": INSERTED})
    return {
        "session": type(spark).__module__,
        "contents": contents(kb),
        "rows": kb.facts("reach").to_spark(spark).count(),
        "place": kb.stats()["place"],
    }


if __name__ == "__main__":
    main(sys.argv[1])
