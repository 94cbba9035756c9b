"""Contradictions on the command line, at the end of `run` and `update`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from evermat.cli.jobs import load
from evermat.cli.output import Output
from evermat.errors.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.api import KnowledgeBase
    from evermat.cli.jobs import Job

_SHOWN = 10
_EXPLAINED = 3


def policy_of(word: str) -> Literal["refuse", "ignore"]:
    """Return the policy of the knowledge base; commands list contradictions."""
    return "refuse" if word == "refuse" else "ignore"


def show_contradictions(
    kb: KnowledgeBase, output: Output, *, explained: bool = False
) -> int:
    """List contradictions; return how many there are.

    Args:
        kb: the knowledge base.
        output: where to print.
        explained: whether to show proofs of the first ones.
    """
    count = kb.stats()["contradictions"]
    shown = kb.contradictions(limit=_SHOWN)
    proofs = [each.explain() for each in shown[:_EXPLAINED]] if explained else []
    output.document["contradictions"] = {
        "count": count,
        "shown": [str(each) for each in shown],
        "proofs": [each.to_dict() for each in proofs],
    }
    if not count:
        return 0
    output.heading(counted(count, "contradiction"))
    for proof in proofs:
        output.say(str(proof))
    for each in shown[len(proofs) :]:
        output.say(str(each))
    if count > len(shown):
        output.say(f"and {count - len(shown):,} more")
    return count


def check_facts(job: Job, output: Output, shapes: Path | None = None) -> bool:
    """Materialise, and show contradictions with proofs; return whether there are none.

    Args:
        job: the program and its facts.
        output: where to print.
        shapes: SHACL shapes to validate as well.
    """
    kb = load(job, Output(is_json=True)).kb
    is_consistent = not show_contradictions(kb, output, explained=True)
    if is_consistent:
        output.say("no contradictions")
    return (shapes is None or _conforms(kb, shapes, output)) and is_consistent


def _conforms(kb: KnowledgeBase, shapes: Path, output: Output) -> bool:
    found = kb.validate(shapes)
    output.document["shapes"] = {
        "conforms": found.conforms,
        "violations": [asdict(each) for each in found.violations],
    }
    if found:
        output.say("all shapes are satisfied")
        return True
    output.heading(counted(len(found.violations), "violation"))
    for each in found.violations[:_SHOWN]:
        output.say(str(each))
    more = len(found.violations) - _SHOWN
    if more > 0:
        output.say(f"and {more:,} more")
    return False
