"""A line of JSON into values, with one sort of error for all that can be wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def read_json(line: str, number: Callable[[str], object] | None = None) -> Any:  # noqa: ANN401  whatever is there
    """The value of a line.

    Args:
        line: what to read.
        number: makes something else of numbers than Python does.

    Raises:
        ValueError: it is no JSON, is nested too deeply, or has half of a pair of
            surrogates, which is no text that could be stored.
    """
    try:
        found = json.loads(line, parse_float=number, parse_int=number)
        if "\\u" in line:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        message = "it is nested too deeply"
        raise ValueError(message) from error
    except UnicodeEncodeError as error:
        message = "it has half of a pair of surrogates"
        raise ValueError(message) from error
    return found
