"""The data pipeline: reads sources, maintains derived facts, and writes outputs.

A TOML file names the sources, the rules and the outputs. A pipeline runs on Spark or on
the embedded engine, with the same results.

Names are imported lazily: tasks of Spark need only the readers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.pipeline.config import Config
    from evermat.pipeline.config_file import read_config
    from evermat.pipeline.runs import Finished, Pipeline

__all__ = ["Config", "Finished", "Pipeline", "read_config"]

_HOMES = {
    "Config": "evermat.pipeline.config",
    "Finished": "evermat.pipeline.runs",
    "Pipeline": "evermat.pipeline.runs",
    "read_config": "evermat.pipeline.config_file",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
