"""Engines: what the algebra runs on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, ClassVar, cast

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from evermat.algebra import Engine

ENGINES = {
    "reference": ("evermat.engines.reference", "ReferenceEngine"),
    "embedded": ("evermat.engines.embedded.engine", "EmbeddedEngine"),
    "spark": ("evermat.engines.spark.adaptive", "AdaptiveEngine"),
}
"""Where the class of each engine is; modules are loaded when an engine is asked for."""


class UnknownEngineError(EvermatError, ValueError):
    """There is no engine of that name."""

    code: ClassVar[str] = "EM501"


def make_engine(name: str, **options: object) -> Engine:
    """A new, empty engine.

    Args:
        name: one of `ENGINES`.
        options: what the class of the engine takes.

    Raises:
        UnknownEngineError: there is no engine of that name.
    """
    if name not in ENGINES:
        known = ", ".join(f"`{each}`" for each in sorted(ENGINES))
        raise UnknownEngineError(
            f"there is no engine called `{name}`", help=f"use one of {known}"
        )
    module, class_name = ENGINES[name]
    make = getattr(importlib.import_module(module), class_name)
    return cast("Engine", make(**options))
