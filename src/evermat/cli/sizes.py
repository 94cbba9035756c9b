"""Amounts of memory as people write them."""

from __future__ import annotations

import re

import typer

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(text: str) -> int:
    """The number of bytes in `500MB`, `2 GiB` or `1000000`.

    >>> parse_size("2GB"), parse_size("1KiB")
    (2000000000, 1024)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if match is None or (match[3] and not match[2]):
        message = f"`{text}` is no amount of memory; write 500MB or 2GiB"
        raise typer.BadParameter(message)
    unit = _BINARY[match[2]] if match[3] else _UNITS[match[2]]
    return int(float(match[1]) * unit)
