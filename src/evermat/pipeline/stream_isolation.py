"""Which events of a batch make its update fail, so that the others can be followed.

The batch is halved until the events are found. Halves are tried in the order in which
events happened, each on top of what was found good before it, so that of two events
that do not go together the later one is to blame. Nothing is changed by trying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.abilities import UnequalValuesError
from evermat.algebra.evaluation_errors import EvaluationError
from evermat.engines.spark.dictionary import DigestCollisionError
from evermat.functions import FunctionError
from evermat.kb.fact_tables import FactTypeError
from evermat.lang.catalogue import ArityClashError, PredicateNameError
from evermat.pipeline.stream_events import BadEvent, changes_of
from evermat.values import ValueConversionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.api import KnowledgeBase
    from evermat.errors import EvermatError
    from evermat.pipeline.stream_events import GoodEvent

CAUSED_BY_EVENTS: tuple[type[EvermatError], ...] = (
    EvaluationError,
    FunctionError,
    UnequalValuesError,
    FactTypeError,
    ArityClashError,
    PredicateNameError,
    ValueConversionError,
    DigestCollisionError,
)
"""Errors for which some event can be to blame; others are about everything."""


def isolate(
    kb: KnowledgeBase, events: Sequence[GoodEvent]
) -> tuple[list[GoodEvent], list[BadEvent]]:
    """The events of a batch that can be followed together, and the rest.

    Args:
        kb: what an update with all of them fails on.
        events: what was read, in the order in which it happened; only the last event
            about a fact matters.
    """
    search = _Search(kb)
    last = {(event.predicate, event.row): event for event in events}
    search.add(sorted(last.values(), key=lambda event: event.position))
    return search.good, search.bad


class _Search:
    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.good: list[GoodEvent] = []
        self.bad: list[BadEvent] = []

    def add(self, events: Sequence[GoodEvent]) -> None:
        """Find the good ones among events that follow those found so far."""
        insert, delete = changes_of([*self.good, *events])
        try:
            self._kb.plan(insert=insert, delete=delete)
        except CAUSED_BY_EVENTS as error:
            if len(events) > 1:
                half = len(events) // 2
                self.add(events[:half])
                self.add(events[half:])
                return
            if not events:
                raise
            (event,) = events
            self.bad.append(BadEvent(event.position, event.text, error.message))
        else:
            self.good += events
