"""The command `evermat`.

Exit codes: 0 all went well; 1 a program, facts or an update are wrong; 2 the command
line is wrong; 3 a budget was used up; 130 interrupted.
"""

from __future__ import annotations

import sys

OK, WRONG_INPUT, WRONG_USAGE, BUDGET_EXCEEDED, INTERRUPTED = 0, 1, 2, 3, 130


def main() -> None:
    """Run the command; errors are shown as they were written, without a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments, and return the exit code."""
    from click.exceptions import Abort, ClickException, Exit
    from typer.main import get_command

    from evermat.cli.app import app
    from evermat.errors import EvermatError
    from evermat.maintenance.watch import BudgetExceededError

    command = get_command(app)
    try:
        code = command.main(arguments, prog_name="evermat", standalone_mode=False)
    except Exit as stop:
        return int(stop.exit_code)
    except ClickException as error:
        error.show()
        return error.exit_code
    except BudgetExceededError as error:
        _complain(str(error))
        return BUDGET_EXCEEDED
    except EvermatError as error:
        _complain(str(error))
        return WRONG_INPUT
    except (Abort, KeyboardInterrupt):
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough; nothing is wrong.
        sys.stderr.close()
        return OK
    return int(code or OK)


def _complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  errors are for people
