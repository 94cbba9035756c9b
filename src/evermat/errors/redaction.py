"""Redaction of passwords and keys in all output.

Errors, reports and pages pass their strings through `redacted`. Errors of other
libraries, which tracebacks show as causes, pass through `without_secrets`. Secrets are
found by their position, in addresses and next to names such as `password`, and by their
value, after they were registered with `keep_secret`. A secret may be an ordinary word,
so it is hidden as a whole word only, and only as long as the object that needs it
exists.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HIDDEN = "***"
_SHORTEST = 4
"""The minimum length of a secret: shorter ones would match by accident."""

_UNLIKE_WORDS = 12
"""The minimum length of a secret that is hidden also within longer words."""

_known: Counter[str] = Counter()
"""Secrets, with the number of objects that need each."""

_WORDS = (
    r"(?:password|passwd|pwd|secret|token|credential|api[_\-.]?key|access[_\-.]?key"
    r"|account[_\-.]?key|sas[_\-.]?key|private[_\-.]?key|signature|sig)"
)
# Everything is bounded, and begins at a word boundary: input may be long and hostile.
_NAME = rf"(?<![\w.\-])[\w.\-]{{0,60}}?{_WORDS}[\w.\-]{{0,60}}+"
_IN_ADDRESSES = re.compile(r"(?<=://)[^\s/@:'\"`]{0,200}:[^\s/'\"`]{0,300}(?=@)")
# S3 keys can contain slashes.
_IN_BUCKETS = re.compile(r"(?i)(\bs3[an]?://)[^\s:@'\"`]{1,200}:[^\s@'\"`]{1,300}(?=@)")
_ORACLE = re.compile(r"(?<=:thin:)[^\s/@]{1,200}/[^\s@]{1,300}(?=@)")
_TOKEN_IN_ADDRESS = re.compile(r"(?<=https://)[^\s/@:]{1,300}(?=@)")
_IN_PARAMETERS = re.compile(rf"(?i)([?&;]{_NAME}=)[^\s&;'\"`,)]+")
_BESIDE_NAMES = re.compile(
    rf"""(?ix) ( (?<!\?) {_NAME} ["']? \s{{0,9}} [=:] \s{{0,9}} )
    ("[^"]{{0,999}}" | '[^']{{0,999}}')"""
)
_SECRET_NAME = re.compile(rf"(?i){_WORDS}")


class SecretsInUse:
    """An owner of secrets, which are hidden as long as it exists."""


def keep_secret(values: Iterable[str], owner: SecretsInUse | None = None) -> None:
    """Hide these strings from now on.

    Args:
        values: the secrets.
        owner: the secrets are forgotten when it is collected; without an owner they are
            hidden until the process ends.
    """
    secrets = [value for value in values if len(value) >= _SHORTEST]
    _known.update(secrets)
    if owner is not None and secrets:
        weakref.finalize(owner, _known.subtract, secrets)


def keep_secret_options(
    options: Mapping[str, str], owner: SecretsInUse | None = None
) -> None:
    """Hide the values of options whose names indicate secrets."""
    secrets = [text for name, text in options.items() if _SECRET_NAME.search(name)]
    keep_secret(secrets, owner)


class HiddenCauseError(Exception):
    """Replaces an error of another library whose text contains a secret."""


def without_secrets(error: BaseException) -> BaseException:
    """Return an error to show as a cause: the same, or a similar one without secrets.

    >>> str(without_secrets(OSError("s3://key:secret@bucket is not there")))
    's3://***@bucket is not there'
    """
    text = _text_of(error)
    shown = redacted(text)
    earlier = error.__cause__
    if earlier is None and not error.__suppress_context__:
        earlier = error.__context__
    hidden = None if earlier is None else without_secrets(earlier)
    if shown == text and hidden is earlier:
        return error
    found = _like(error, shown).with_traceback(error.__traceback__)
    found.__cause__ = hidden
    return found


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  Java's ask a JVM that may have ended
        return ""


def _like(error: BaseException, text: str) -> BaseException:
    if type(error).__module__ == "builtins":
        try:
            found = type(error)(text)
        except TypeError:  # its constructor needs other arguments
            pass
        else:
            return found
    return HiddenCauseError(f"{type(error).__name__}: {text}")


def redacted(text: str) -> str:
    """Return the text without secrets.

    >>> redacted("cannot reach s3://key:secret@bucket/p?password=x&user=u")
    'cannot reach s3://***@bucket/p?password=***&user=u'
    """
    secrets = [secret for secret, needed in _known.items() if needed > 0]
    for secret in sorted(secrets, key=len, reverse=True):
        text = _without(text, secret)
    if "://" in text or "thin:" in text:
        text = _IN_BUCKETS.sub(rf"\1{HIDDEN}", text)
        text = _IN_ADDRESSES.sub(HIDDEN, text)
        text = _TOKEN_IN_ADDRESS.sub(HIDDEN, text)
        text = _ORACLE.sub(HIDDEN, text)
    if "=" in text or ":" in text:
        text = _IN_PARAMETERS.sub(rf"\1{HIDDEN}", text)
        text = _BESIDE_NAMES.sub(rf'\1"{HIDDEN}"', text)
    return text


def _without(text: str, secret: str) -> str:
    for form in dict.fromkeys([secret, quote(secret, safe="")]):
        if form not in text:
            continue
        pattern = re.escape(form)
        if len(form) < _UNLIKE_WORDS:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    return text


def redacted_values(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return a JSON value with all its strings redacted."""
    match value:
        case str():
            return redacted(value)
        case list():
            return [redacted_values(each) for each in value]
        case dict():
            return {key: redacted_values(each) for key, each in value.items()}
        case _:
            return value
