"""`evermat explain`: why a fact holds, as a tree, as text, as JSON or as a graph."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from evermat.cli.jobs import load
from evermat.cli.output import Output
from evermat.runtime.input_limits import allowing

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from evermat.cli.jobs import Job
    from evermat.explain.explanation import Derivation, Explanation


class Form(Enum):
    """The form of the output; text is a tree on a terminal."""

    TEXT = auto()
    JSON = auto()
    DOT = auto()


def show_explanation(
    job: Job, fact: str, form: Form, *, derivations: int, limit: int | None
) -> bool:
    """Materialise and explain one fact; return whether it holds."""
    with allowing(job.places()):
        loaded = load(job, Output(is_json=True), question=fact)
    with loaded.progress.during("explaining"):
        explanation = loaded.kb.explain(fact, derivations=derivations, limit=limit)
    output = Output(is_json=form is Form.JSON)
    if form is Form.JSON:
        output.document.update(explanation.to_dict())
    elif form is Form.DOT:
        output.say(explanation.to_dot().rstrip())
    elif output.is_terminal:
        from rich.console import Console

        console = Console()
        for tree in _trees(explanation):
            console.print(tree)
    else:
        output.say(str(explanation))
    output.finish()
    return explanation.holds


def _trees(explanation: Explanation) -> list[Tree]:
    from rich.text import Text
    from rich.tree import Tree

    branches: list[Tree] = []
    for fact, depth, is_again in explanation.walk():
        label = Text(explanation.fact_text(fact), style="bold")
        note = explanation.note(fact, is_again)
        label.append(note, style="not bold green" if note == "   explicit" else "dim")
        derivation = explanation.steps[fact]
        if derivation is not None and not is_again:
            label.append(_remarks(explanation, derivation))
        branch = branches[depth - 1].add(label) if depth else Tree(label)
        branches[depth:] = [branch]
    trees = branches[:1]
    if not explanation.holds:
        text = f"{explanation.fact_text(explanation.fact)} does not hold"
        tree = Tree(Text(text, style="bold red"))
        for failure in explanation.failures:
            tree.add(Text("\n".join(explanation.failure_remarks(failure))))
        trees.append(tree)
    if explanation.derivation_count is not None:
        other = Tree(Text(explanation.derivation_title, style="bold"))
        for derivation in explanation.derivations:
            step = other.add(Text("\n".join(explanation.remarks(derivation))))
            for premise in derivation.premises:
                step.add(Text(explanation.fact_text(premise)))
        trees.append(other)
    return trees


def _remarks(explanation: Explanation, derivation: Derivation) -> Text:
    from rich.text import Text

    found = Text()
    for remark in explanation.remarks(derivation):
        style = "not bold cyan" if remark.startswith("by ") else "not bold"
        found.append(f"\n{remark}", style=style)
    return found
