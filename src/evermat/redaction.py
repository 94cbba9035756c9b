"""Passwords and keys, taken out of everything that is shown.

Errors, reports and pages pass their texts through `redacted`; nothing else need know.
Secrets are found by where they stand, in addresses and beside names such as `password`,
and by themselves, once `keep_secret` has been told of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HIDDEN = "***"
_SHORTEST = 4
"""Characters of a secret: a shorter one would take words out of texts by accident."""

_known: set[str] = set()

_WORDS = (
    r"(?:password|passwd|pwd|secret|token|credential|api[_\-.]?key|access[_\-.]?key"
    r"|account[_\-.]?key|sas[_\-.]?key|private[_\-.]?key|signature|sig)"
)
# Everything is bounded, and begins where a word does: texts may be long and hostile.
_NAME = rf"(?<![\w.\-])[\w.\-]{{0,60}}?{_WORDS}[\w.\-]{{0,60}}+"
_IN_ADDRESSES = re.compile(r"(?<=://)[^\s/@:'\"`]{0,200}:[^\s/'\"`]{0,300}(?=@)")
# Keys of S3 have slashes in them.
_IN_BUCKETS = re.compile(r"(?i)(\bs3[an]?://)[^\s:@'\"`]{1,200}:[^\s@'\"`]{1,300}(?=@)")
_ORACLE = re.compile(r"(?<=:thin:)[^\s/@]{1,200}/[^\s@]{1,300}(?=@)")
_TOKEN_IN_ADDRESS = re.compile(r"(?<=https://)[^\s/@:]{1,300}(?=@)")
_IN_PARAMETERS = re.compile(rf"(?i)([?&;]{_NAME}=)[^\s&;'\"`,)]+")
_BESIDE_NAMES = re.compile(
    rf"""(?ix) ( (?<!\?) {_NAME} ["']? \s{{0,9}} [=:] \s{{0,9}} )
    ("[^"]{{0,999}}" | '[^']{{0,999}}')"""
)
_SECRET_NAME = re.compile(rf"(?i){_WORDS}")


def keep_secret(values: Iterable[str]) -> None:
    """Never show these texts from now on."""
    _known.update(value for value in values if len(value) >= _SHORTEST)


def keep_secret_options(options: Mapping[str, str]) -> None:
    """Never show the values of options whose names say that they are secret."""
    keep_secret(text for name, text in options.items() if _SECRET_NAME.search(name))


def redacted(text: str) -> str:
    """The text without secrets.

    >>> redacted("cannot reach s3://key:secret@bucket/p?password=x&user=u")
    'cannot reach s3://***@bucket/p?password=***&user=u'
    """
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    if "://" in text or "thin:" in text:
        text = _IN_BUCKETS.sub(rf"\1{HIDDEN}", text)
        text = _IN_ADDRESSES.sub(HIDDEN, text)
        text = _TOKEN_IN_ADDRESS.sub(HIDDEN, text)
        text = _ORACLE.sub(HIDDEN, text)
    if "=" in text or ":" in text:
        text = _IN_PARAMETERS.sub(rf"\1{HIDDEN}", text)
        text = _BESIDE_NAMES.sub(rf'\1"{HIDDEN}"', text)
    return text


def redacted_values(value: Any) -> Any:  # noqa: ANN401  JSON values are anything
    """JSON values with all their texts redacted."""
    match value:
        case str():
            return redacted(value)
        case list():
            return [redacted_values(each) for each in value]
        case dict():
            return {key: redacted_values(each) for key, each in value.items()}
        case _:
            return value
