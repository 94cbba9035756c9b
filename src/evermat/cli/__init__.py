"""The command `evermat`.

Exit codes: 0 success; 1 an error in a program, facts or an update; 2 an error in the
command line; 3 a budget was exceeded; 4 a fact to be explained does not hold; 130
interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

OK, WRONG_INPUT, WRONG_USAGE, BUDGET_EXCEEDED, DOES_NOT_HOLD = 0, 1, 2, 3, 4


def main() -> None:
    """Run the command; errors are shown without a traceback."""
    _open_streams()
    sys.exit(run(sys.argv[1:]))


def _open_streams() -> None:
    """Open the null device in place of standard streams that the caller has closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  to the end


def run(arguments: list[str]) -> int:
    """Run the command with these arguments, and return the exit code."""
    from evermat.cli.app import app
    from evermat.errors import EvermatError
    from evermat.maintenance.limits import BudgetExceededError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            app(arguments, prog_name="evermat")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else OK
        # Usage errors were printed already; the context has the message.
        message = getattr(stop.__context__, "format_message", None)
        if code == WRONG_USAGE and message is not None:
            _document(arguments, stop, message(), code)
        return code
    except EvermatError as error:
        is_budget = isinstance(error, BudgetExceededError)
        code = BUDGET_EXCEEDED if is_budget else WRONG_INPUT
        _complain(_text(error))
        _document(arguments, error, error.message, code)
        return code
    except OSError as error:
        what = "" if error.filename is None else f" `{error.filename}`"
        reason = (error.strerror or str(error)).lower()
        text = f"the system refuses{what}: {reason}"
        _complain(text)
        _document(arguments, error, text, WRONG_INPUT)
        return WRONG_INPUT
    return OK


def _document(
    arguments: list[str], error: BaseException, message: str, code: int
) -> None:
    """Print an error as JSON, too, if JSON was requested."""
    from evermat.cli.output import print_error, wants_json

    if wants_json(arguments):
        print_error(error, message, code)


def _show_warning(message: Warning | str, *_: object) -> None:
    _complain(str(message))


def _text(error: Exception) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def _complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  errors are for people
