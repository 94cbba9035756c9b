"""`deltalake`, which reads and writes Delta tables; not everybody has it."""

from __future__ import annotations

from evermat.results.result import MissingPackageError

try:
    import deltalake
except ImportError as error:
    raise MissingPackageError(
        f"states and stores need `{error.name or 'deltalake'}`, which is not installed",
        help='install it with pip install "evermat[lake]"',
    ) from error

__all__ = ["deltalake"]
