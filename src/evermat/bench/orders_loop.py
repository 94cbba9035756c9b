"""The shop's recalls written by hand: the baseline of the jobs in `orders`.

A careful data engineer would write seminaive loops over data frames with adaptive
execution, in which each round's new rows are checkpointed and tested once, the plan of
known rows is cut every few rounds, and negation is an anti-join. Everything is computed
from scratch each time.

usage: python -m evermat.bench.orders_loop FOLDER [DAY]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CUT = 3
"""Number of rounds after which plans are cut."""
MASTER, MEMORY = "local[2]", "3g"


def main(folder: Path, *, day: bool) -> None:
    """Read the tables, derive everything, and write the outputs."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  slow, and optional

    spark = (
        SparkSession.builder.master(MASTER)
        .appName("recalls")
        .config("spark.driver.memory", MEMORY)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    recalls(spark, folder, day=day)
    spark.stop()


def recalls(spark: SparkSession, folder: Path, *, day: bool) -> None:
    """Evaluate the rules of `generators.orders`, one after the other."""

    def table(name: str, *columns: str) -> DataFrame:
        return spark.read.parquet(f"{folder}/data/{name}.parquet").toDF(*columns)

    line = table("line", "order", "article")
    if day:
        gone = spark.read.parquet(f"{folder}/day/gone/line").toDF("order", "article")
        new = spark.read.parquet(f"{folder}/day/new/line").toDF("order", "article")
        line = line.join(gone, ["order", "article"], "left_anti").union(new).distinct()
    with_part = closed(table("part_of", "to", "from").select("from", "to"))
    supplies = closed(table("delivers", "from", "to"))
    recalled = table("recalled", "supplier")
    makes = table("makes", "supplier", "part")
    reached = recalled.join(supplies, recalled["supplier"] == supplies["from"])
    sources = recalled.union(reached.select("to")).distinct()
    suspect = makes.join(sources, "supplier").select("part").distinct().cache()
    containing = with_part.join(suspect, with_part["to"] == suspect["part"])
    affected = suspect.union(containing.select("from")).distinct().toDF("article")
    exposed = line.join(affected, "article").join(
        table("returned", "order", "article"), ["order", "article"], "left_anti"
    )
    placed = table("placed", "order", "customer")
    notify = exposed.join(placed, "order").select("customer", "article").distinct()
    notify = notify.cache()
    notified = table("notified", "customer", "article")
    overdue = notify.join(notified, ["customer", "article"], "left_anti")
    notify.write.mode("overwrite").parquet(f"{folder}/loop/notify")
    overdue.select("customer").distinct().write.mode("overwrite").parquet(
        f"{folder}/loop/overdue"
    )


def closed(edges: DataFrame) -> DataFrame:
    """Return the transitive closure of edges `from`, `to`."""
    edges = edges.distinct().localCheckpoint()
    steps = edges.toDF("to", "next")
    known = delta = edges
    rounds = 0
    while not delta.isEmpty():
        found = delta.join(steps, "to").select("from", "next").toDF("from", "to")
        new = found.distinct().join(known, ["from", "to"], "left_anti")
        delta = new.localCheckpoint()  # otherwise plans would double with each round
        known = known.union(delta)
        rounds += 1
        if rounds % _CUT == 0:
            known = known.localCheckpoint()
    return known.cache()


if __name__ == "__main__":
    main(Path(sys.argv[1]), day=len(sys.argv) > 2)  # noqa: PLR2004  see above
