"""Compile all kernels, so that the first run need not: `python -m …warm_up`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    # Importing compiles, or finds what was compiled before.
    package = "evermat.engines.embedded"
    compiled = {
        id(item)
        for file in Path(__file__).parent.glob("kernels*.py")
        for item in vars(import_module(f"{package}.{file.stem}")).values()
        if hasattr(item, "py_func")
    }
    print(f"{len(compiled)} kernels are ready")  # noqa: T201  what the command is for
