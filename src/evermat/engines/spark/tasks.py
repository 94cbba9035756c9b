"""Functions of our own inside tasks, in processes that outlive them.

They have the access to stores that the driver has. The environment says who may read
and write, and that of the driver does not reach the processes of tasks by itself. Its
variables travel within the task, not in settings of Spark, which show up in logs and
pages.
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
"""How variables begin that the clients of stores look at."""


def map_in_tasks(frame: DataFrame, task: Task, schema: str | StructType) -> DataFrame:
    """What a task makes of a frame; it may read and write what the driver may."""
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
        # After each task Spark looks for garbage among all there is. What was loaded
        # stays, and looking through it takes longer than a small task.
        gc.freeze()
    for name in _given - variables.keys():
        del os.environ[name]
    # What a worker was given by those who run it comes first.
    mine = {name for name in variables if name in _given or name not in os.environ}
    os.environ.update({name: variables[name] for name in mine})
    _given.clear()
    _given.update(mine)
    return task(batches)
