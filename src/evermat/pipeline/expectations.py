"""Expectations: conditions that are checked before results are published.

They are checked between the commit and the outputs: the state is up to date with the
sources, and published results do not change if an expectation fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.pipeline.intake import write_table_to

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.api import KnowledgeBase
    from evermat.pipeline.config import Expectation

_SHOWN = 5


class ExpectationError(EvermatError, ValueError):
    """An expectation of a pipeline that is not met; nothing was published."""

    code: ClassVar[str] = "EM809"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of an expectation.

    Attributes:
        is_met: whether it is met.
        answers: the number of answers of its query.
        sample: some of them.
        place: where all of them were written, if they were quarantined.
    """

    expectation: Expectation
    is_met: bool
    answers: int
    sample: pa.Table
    place: str = ""

    @property
    def note(self) -> str:
        """The result in words, for lines and pages."""
        if self.is_met:
            return "met"
        found = counted(self.answers, "answer") if self.answers else "no answer"
        aside = f", in `{self.place}`" if self.place else ""
        return f"not met: `{self.expectation.query}` has {found}{aside}"


def look_into(kb: KnowledgeBase, expectation: Expectation, folder: str) -> Finding:
    """Run a query, and check whether the answers are as expected.

    Args:
        kb: the knowledge base.
        expectation: the expectation.
        folder: the folder for quarantined answers.
    """
    result = kb.query(expectation.query)
    answers = len(result)
    is_met = bool(answers) == expectation.wants_some
    rows = result[:_SHOWN].to_arrow()
    if is_met or expectation.action != "quarantine":
        return Finding(expectation, is_met, answers, rows)
    aside = f"{folder}/{expectation.name}.parquet"
    write_table_to(result.to_arrow(), aside, "[rejected]")
    return Finding(expectation, is_met, answers, rows, aside)


def require_met(findings: list[Finding]) -> None:
    """Refuse to publish results that are not as expected.

    Raises:
        ExpectationError: with all such expectations.
    """
    failed = [
        each
        for each in findings
        if not each.is_met and each.expectation.action == "fail"
    ]
    if not failed:
        return
    messages = []
    for each in failed:
        rows = [str(tuple(row.values())) for row in each.sample.to_pylist()]
        messages.append(
            f"`{each.expectation.name}` is {each.note}"
            + (f", such as {'; '.join(rows)}" if rows else "")
        )
    raise ExpectationError(
        ". ".join(messages),
        reason="expectations are to be met before anything is published",
        help="the state has the new version, and outputs are as they were: correct the "
        "sources and update, or go back to the version before with `evermat store "
        "restore`",
    )
