"""The shell on a terminal, with history and completion, or on lines of a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from evermat.results.result import require_package

if TYPE_CHECKING:
    from evermat.shell.session import Session


def run(session: Session, source: TextIO = sys.stdin) -> None:
    """Answer lines until the end of the input."""
    if source.isatty():
        _interactive(session)
        return
    waiting = ""
    for line in source:
        waiting += line
        if session.is_complete(waiting):
            _show(session.answer(waiting))
            waiting = ""
        if session.is_over:
            return
    if waiting.strip():
        _show(session.answer(waiting))


def _interactive(session: Session) -> None:
    require_package("prompt_toolkit", "shell")
    from prompt_toolkit import PromptSession  # noqa: PLC0415  optional
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory  # noqa: PLC0415
    from prompt_toolkit.completion import WordCompleter  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415

    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history())),
        auto_suggest=AutoSuggestFromHistory(),
        completer=WordCompleter(session.completions, sentence=False, WORD=True),
        complete_while_typing=False,
    )
    _show("a query, a statement that ends with a full stop, or .help")
    while not session.is_over:
        try:
            text = prompt.prompt("evermat> ")
            while not session.is_complete(text):
                text += "\n" + prompt.prompt("    ...> ")
            _show(session.answer(text))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _history() -> Path:
    """Return the file of the history of lines."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(home) / "evermat" / "history"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _show(text: str) -> None:
    if text:
        print(text, flush=True)  # noqa: T201  the shell is for people
