"""Rows that stay where they are, on a cluster, until somebody asks for them here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeGuard

from evermat.algebra import Engine, Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from evermat.algebra import Query, Views
    from evermat.columns import TableParts


class DistantRows(Protocol):
    """Rows of a relation or answers that are not in this process.

    Attributes:
        num_columns: how many columns they have.
        num_rows: how many there are.
    """

    num_columns: int

    @property
    def columns(self) -> list[str]:
        """What the columns are called."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def read(self, limit: int | None = None) -> pa.Table:
        """The rows in this process, or some of them, as columns of terms."""

    def in_parts(self, names: Sequence[str]) -> AbstractContextManager[TableParts]:
        """The same in parts of which not all are in this process at a time."""

    def split(self, other: Self, *, common: bool) -> DistantRows:
        """The rows that others have as well, or those that they have not."""

    def frame(self, names: Sequence[str], session: SparkSession) -> DataFrame:
        """The rows as a frame of Spark, with plain types."""

    def terms(self) -> DataFrame:
        """The same, with a struct of kind and text for each value."""


class DistantSnapshot(Snapshot, Protocol):
    """A snapshot whose rows may stay where they are."""

    def is_large(self, relation: str) -> bool:
        """Whether a relation has too many rows for this process."""

    def distant(self, relation: str) -> DistantRows:
        """The rows of a relation, where they are."""


def is_distant(snapshot: Snapshot) -> TypeGuard[DistantSnapshot]:
    """Whether the rows of a snapshot may stay where they are."""
    return hasattr(snapshot, "distant")


class DistantEngine(Engine, Protocol):
    """An engine that may leave answers where they are."""

    def answer_distant(self, query: Query, views: Views) -> pa.Table | DistantRows:
        """The distinct rows a single query yields."""


def has_distant_answers(engine: Engine) -> TypeGuard[DistantEngine]:
    """Whether an engine may leave answers where they are."""
    return hasattr(engine, "answer_distant")
