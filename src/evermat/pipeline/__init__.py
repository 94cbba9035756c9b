"""The data pipeline: sources in, consequences out, kept true run after run.

A TOML file says what to read, which rules to follow and where results go. It runs on
Spark or on the embedded engine, with the same results.

Names are loaded when they are first used: tasks of Spark need only those that read.
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
