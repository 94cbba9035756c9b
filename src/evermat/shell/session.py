"""The lines of the shell and their effects, independent of the terminal.

reach("a", ?x)              a query
edge("c", "d") .            a statement that ends with a full stop is added …
- edge("a", "b") .          … or, after a minus, removed
.explain reach("a", "c")    commands begin with a full stop
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.lang.printer import Printer

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.api import KnowledgeBase
    from evermat.results.change import Change
    from evermat.results.result import Result

_SHOWN = 40
"""Rows of an answer, and facts of a change, that are shown."""


class Command(NamedTuple):
    """A command of the shell."""

    help: str
    work: Callable[[Session, str], str]


class Session:
    """A knowledge base, and the effects of lines on it.

    Attributes:
        is_over: whether the shell is to end.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.is_over = False

    def answer(self, line: str) -> str:
        """Return the answer to a line, as text; errors are answers, too."""
        text = line.strip()
        try:
            if not text or text.startswith("%"):
                return ""
            if text.startswith("."):
                return self._command(text)
            if text.endswith("."):
                return self._change(text)
            return self._shown(self.kb.query(text))
        except EvermatError as error:
            return str(error)

    def is_complete(self, text: str) -> bool:
        """Return whether a statement is complete, or needs further lines."""
        text = text.strip()
        is_statement = ":-" in text or text.startswith(("-", "@"))
        return not is_statement or text.endswith(".")

    def completions(self) -> list[str]:
        """Return the completions of words: predicates and commands."""
        printer = Printer(dict(self.kb.prefixes))
        return [*COMMANDS, *map(printer.predicate, self.kb.predicates), "not"]

    # ------------------------------------------------------------------- lines

    def _command(self, text: str) -> str:
        name, _, rest = text.partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            return f"there is no command `{name}`; .help lists them"
        return command.work(self, rest.strip())

    def _change(self, text: str) -> str:
        if text.startswith("-"):
            return self._told(self.kb.update(remove_rules=text[1:]))
        return self._told(self.kb.update(add_rules=text))

    def _shown(self, result: Result) -> str:
        if not result.columns:
            return "yes" if len(result) else "no"
        rows = [tuple(map(str, row)) for row in result.first(_SHOWN).constants()]
        table = [result.columns, *rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True))
            for row in table
        ]
        more = len(result) - len(rows)
        rest = f", {len(rows)} of them shown" if more else ""
        lines = [line.rstrip() for line in lines]
        return "\n".join([*lines, f"({counted(len(result), 'row')}{rest})"])

    def _told(self, change: Change) -> str:
        lines, left = [], _SHOWN
        for name in change.predicates:
            for sign, facts in (("+", change.added(name)), ("-", change.removed(name))):
                shown = facts.first(left)
                left -= len(shown)
                rows = (", ".join(map(str, row)) for row in shown.constants())
                lines += [f"{sign} {name}({row})" for row in rows]
        added, removed = change.total
        title = f"{counted(added, 'fact')} added, {removed:,} removed"
        if not change.applied:
            title += ", if it were done"
        return "\n".join([*lines, *["…"] * (added + removed > _SHOWN), title])

    # ---------------------------------------------------------------- commands

    def explain(self, fact: str) -> str:
        """Why a fact holds, or does not."""
        return str(self.kb.explain(fact.rstrip(" .") if fact.endswith(" .") else fact))

    def plan(self, text: str) -> str:
        """Return what a statement would change, or the plans of rules."""
        if not text:
            return self.kb.explain_plan()
        if text.startswith("-"):
            return self._told(self.kb.plan(remove_rules=text[1:]))
        return self._told(self.kb.plan(add_rules=text))

    def undo(self, _: str) -> str:
        """Undo the last update."""
        return self._told(self.kb.undo())

    def facts(self, predicate: str) -> str:
        """Return the facts of a predicate."""
        return self._shown(self.kb[predicate])

    def predicates(self, _: str) -> str:
        """Return the predicates and their sizes."""
        sizes = self.kb.stats()["predicates"]
        return "\n".join(
            f"{name}  {size['facts']:,} facts, {size['explicit']:,} explicit"
            for name, size in sizes.items()
        )

    def rules(self, _: str) -> str:
        """Return the rules."""
        printer = Printer(dict(self.kb.prefixes))
        return "\n".join(map(printer.rule, self.kb.rules))

    def profile(self, _: str) -> str:
        """Return the cost of each rule."""
        return str(self.kb.profile())

    def quit(self, _: str) -> str:
        """End the shell."""
        self.is_over = True
        return ""

    def help(self, _: str) -> str:
        """Return an overview of lines and commands."""
        lines = [
            'reach("a", ?x)        ask a query',
            'edge("c", "d") .      add a fact or a rule',
            '- edge("a", "b") .    remove one',
        ]
        return "\n".join(
            [*lines, *(f"{name:<22}{each.help}" for name, each in COMMANDS.items())]
        )


COMMANDS = {
    ".explain": Command("why a fact holds, or does not", Session.explain),
    ".plan": Command("what a statement would change; how rules run", Session.plan),
    ".undo": Command("undo the last update", Session.undo),
    ".facts": Command("the facts of a predicate", Session.facts),
    ".predicates": Command("the predicates and their sizes", Session.predicates),
    ".rules": Command("the rules", Session.rules),
    ".profile": Command("what each rule costs", Session.profile),
    ".help": Command("what there is", Session.help),
    ".quit": Command("end the shell (Ctrl-D)", Session.quit),
}
