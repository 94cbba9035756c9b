"""Evermat's functions inside tasks, in worker processes that are reused.

They have the driver's access to stores. Environment variables contain credentials, and
those of the driver are not passed to the processes of tasks by default. They are sent
within the task, not in settings of Spark, which appear in logs and web pages.
"""

from __future__ import annotations

import gc
import os
import warnings
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PREFIXES = ("AWS_", "AZURE_", "GOOGLE_")
"""Prefixes of variables that the clients of stores use."""


def map_in_tasks(frame: DataFrame, task: Task, schema: str | StructType) -> DataFrame:
    """Apply a task to a frame, with the driver's access to stores."""
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(PREFIXES)
    }
    with warnings.catch_warnings():
        # PySpark warns of new versions of pandas, which is not used here.
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support")
        return frame.mapInArrow(partial(_run, variables, task), schema)


_given: set[str] = set()
"""Variables of this process that came with a task."""
_tasks = count()
"""Numbers of the tasks of this process."""
LOADING = 2
"""Tasks before which there may be something new to load: libraries, then kernels."""


def _run(
    variables: Mapping[str, str], task: Task, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    if next(_tasks) < LOADING:
        # After each task Spark runs the garbage collector. Loaded modules stay, and
        # scanning them takes longer than a small task.
        gc.freeze()
    for name in _given - variables.keys():
        del os.environ[name]
    # Variables set by the administrators of a worker take precedence.
    mine = {name for name in variables if name in _given or name not in os.environ}
    os.environ.update({name: variables[name] for name in mine})
    _given.clear()
    _given.update(mine)
    return task(batches)
