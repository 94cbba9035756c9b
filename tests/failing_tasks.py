"""A knowledge base on Spark, each task of which fails once, after it has written.

Run as `python failing_tasks.py PLACE`, in a process of its own: how often a task may
fail is settled when Spark starts.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import evermat
from evermat.engines.spark import task_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

RULES = "pair(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) ."
EDGES = [(node, node + 1) for node in range(40)]


def main(place: str) -> None:
    os.environ["EVERMAT_SPARK_MASTER"] = "local[2,2]"
    os.environ["EVERMAT_SPARK_DRIVER_FACTS"] = "0"
    os.environ["EVERMAT_SPARK_SMALL"] = "8"
    write_task = task_files.write_task

    def failing(*args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415  in the task

        yield from write_task(*args, **options)
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            message = "this attempt fails"
            raise OSError(message)

    patched: Any = failing
    task_files.write_task = patched
    evermat.KnowledgeBase(RULES, engine="spark", state=place).insert("edge", EDGES)


if __name__ == "__main__":
    main(sys.argv[1])
