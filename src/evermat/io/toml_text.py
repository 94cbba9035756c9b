"""Parses TOML, with Evermat's own errors where its parser would crash."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from evermat.runtime.input_limits import NestingError, input_limits

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = r"""(?:[\w\-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTS = r"[ \t]*+\.[ \t]*+"


def read_toml(
    text: str, name: str, *, parse_float: Callable[[str], Any] = float
) -> dict[str, Any]:
    """Return the values of a TOML text.

    Args:
        text: the text.
        name: the name of the file in messages.
        parse_float: converts numbers with a point or an exponent.

    Raises:
        TOMLDecodeError: it is not TOML.
        NestingError: it is nested too deeply.
    """
    limit = input_limits().nesting
    # A key with many dots takes quadratic time, and its tables are too deep to
    # traverse.
    long_key = rf"(?<![\w\-]){_PART}(?:{_DOTS}{_PART}){{{limit}}}"
    try:
        if text.count(".") < limit or re.search(long_key, text) is None:
            return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        pass
    raise NestingError(f"`{name}` is nested too deeply", "nesting")
