"""Compile all kernels, so that the first run need not: `python -m …warm_up`."""

from __future__ import annotations

from evermat.engines.embedded import (
    kernels,
    kernels_changes,
    kernels_closure,
    kernels_heads,
    kernels_programs,
    kernels_proofs,
    kernels_reach,
    kernels_rows,
    kernels_sets,
    kernels_texts,
    kernels_updates,
    kernels_wide,
)

if __name__ == "__main__":
    # Importing compiles, or finds what was compiled before.
    compiled = [
        name
        for module in (
            kernels,
            kernels_changes,
            kernels_closure,
            kernels_heads,
            kernels_programs,
            kernels_proofs,
            kernels_reach,
            kernels_rows,
            kernels_sets,
            kernels_texts,
            kernels_updates,
            kernels_wide,
        )
        for name, item in vars(module).items()
        if hasattr(item, "py_func")
    ]
    print(f"{len(compiled)} kernels are ready")  # noqa: T201  what the command is for
