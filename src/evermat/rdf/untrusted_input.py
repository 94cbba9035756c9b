"""Checks of RDF files before pyoxigraph parses them, and XML rewritten for it.

pyoxigraph ends the process on triples that are terms of triples of triples, and on XML
whose entities expand to gigabytes; on deep XML it takes quadratic time. It refuses
files that are not in UTF-8, and entities declared between single quotes, which ontology
editors and older tools write.
"""

from __future__ import annotations

import re
import xml.parsers.expat
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from itertools import accumulate
from typing import TYPE_CHECKING

from evermat.runtime.input_limits import (
    InputLimits,
    NestingError,
    UnpackedSizeError,
    input_limits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.rdf.lines import Stream

_MARKS = {BOM_UTF8: "utf-8-sig", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}
_ENCODING = re.compile(rb"""^(\s*<\?xml[^>]*?encoding\s*=\s*)(["'])([\w.\-]+)\2""")
_ENTITY = re.compile(rb"""(<!ENTITY\s+[^\s'">]+\s+)'([^'"]*)'""")


def plain_xml(data: bytes) -> bytes:
    """The same document in UTF-8, with entities declared between double quotes.

    Lines and columns stay as they are. A file in an encoding that is unknown, or that
    is not in the encoding it declares, is returned as it is, for the parser to refuse.
    """
    return _with_double_quotes(_in_utf8(data))


def _in_utf8(data: bytes) -> bytes:
    mark = next((mark for mark in _MARKS if data.startswith(mark)), None)
    if mark is not None:
        try:
            data = data.decode(_MARKS[mark]).encode()
        except UnicodeDecodeError:
            return data
    declared = _ENCODING.match(data)
    if declared is None or declared[3].lower() in {b"utf-8", b"utf8"}:
        return data
    rest = data[declared.end() :]
    # A mark counts more than a declaration. Without one, what could be read byte by
    # byte so far is not UTF-16, whatever the program that wrote it says.
    if mark is None and not declared[3].lower().startswith(b"utf-16"):
        try:
            rest = rest.decode(declared[3].decode("ascii")).encode()
        except (LookupError, UnicodeDecodeError):
            return data
    # As wide as the name it takes the place of.
    quote = declared[2]
    room = b" " * max(0, len(declared[3]) - len(b"UTF-8"))
    return declared[1] + quote + b"UTF-8" + quote + room + rest


def _with_double_quotes(data: bytes) -> bytes:
    start, doctype, rest = data.partition(b"<!DOCTYPE")
    if not doctype:
        return data
    declared, end, body = rest.partition(b"]>")
    return b"".join([start, doctype, _ENTITY.sub(rb'\1"\2"', declared), end, body])


# --------------------------------------------------------------------------------- XML

_NO_ELEMENTS = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_REFERENCE = re.compile(r"&([^\s#;&]+);")
_AMPLIFICATION = xml.parsers.expat.errors.codes.get(
    "limit on input amplification factor (from DTD and entities) breached"
)
_CHUNK = 1 << 12


def require_safe_xml(name: str, data: bytes) -> None:
    """Refuse XML that would harm its reader.

    Args:
        name: what messages call the file.
        data: the document, in UTF-8.

    Raises:
        ExpatError: it is not well-formed.
        UnpackedSizeError: its entities expand to too much.
        NestingError: its elements are nested too deeply.
    """
    entities: dict[str, str] = {}

    def declared(*found: object) -> None:
        entity, is_parameter, value = found[:3]
        if value is not None and not is_parameter:
            entities.setdefault(str(entity), str(value))

    parser = xml.parsers.expat.ParserCreate("UTF-8")
    parser.EntityDeclHandler = declared
    problem: xml.parsers.expat.ExpatError | None = None
    try:
        parser.Parse(data, True)  # noqa: FBT003  as expat wants it
    except xml.parsers.expat.ExpatError as error:
        problem = error
        # Expat has a limit of its own, and nothing to raise it with.
        if error.code == _AMPLIFICATION:
            message = f"the entities of `{name}` expand to far more than the file"
            _refuse_expansion(message)
            return
    sizes: dict[str, int] = {}
    for entity in entities:
        if _expanded(entity, entities, sizes, name) > _LONGEST_ENTITY:
            _refuse_expansion(f"the entity `{entity}` of `{name}` expands too far")
    limit = input_limits().xml_nesting
    if problem is not None or _depth_bound(data, limit) > limit:
        _require_depth(name, data, limit)


_LONGEST_ENTITY = 1 << 20
"""Characters of an entity: real ones are the beginnings of IRIs."""


def _refuse_expansion(message: str) -> None:
    if input_limits().unpacked_ratio <= InputLimits().unpacked_ratio:
        raise UnpackedSizeError(message, "unpacked_ratio")


def _expanded(
    entity: str, entities: dict[str, str], sizes: dict[str, int], name: str
) -> int:
    """How many characters an entity stands for; `sizes` has those that are known."""
    around: list[str] = []
    waiting = [entity]
    while waiting:
        this = waiting[-1]
        value = entities.get(this, "")
        parts = _REFERENCE.findall(value)
        unknown = [part for part in parts if part not in sizes]
        if not unknown:
            sizes[this] = len(value) + sum(sizes[part] for part in parts)
            waiting.pop()
            around = around[: len(waiting)]
            continue
        around.append(this)
        if unknown[0] in around or len(around) > input_limits().nesting:
            message = f"the entity `{entity}` of `{name}` is nested too deeply"
            raise NestingError(message, "nesting")
        waiting.append(unknown[0])
    return sizes[entity]


def _depth_bound(data: bytes, limit: int) -> int:
    """At least the depth of a well-formed document, counted by chunks."""
    if _DOCTYPE.search(data, 0, _CHUNK << 4):
        data = _DOCTYPE.sub(b"", data, count=1)
    if b"<!--" in data or b"<![CDATA[" in data or data.count(b"<?") > 1:
        data = _NO_ELEMENTS.sub(b"", data)
    if data.count(b"<") != data.count(b">"):
        return limit + 1  # a `>` in a text may look like the end of an element
    depth = most = 0
    for start in range(0, len(data), _CHUNK):
        end = start + _CHUNK
        ends = data.count(b"</", start, end + 1)
        others = sum(data.count(sign, start, end + 1) for sign in (b"<?", b"<!"))
        opened = data.count(b"<", start, end) - ends - others
        most = max(most, depth + opened)
        depth += opened - ends - data.count(b"/>", start, end + 1)
    return most


def _require_depth(name: str, data: bytes, limit: int) -> None:
    depth = 0

    def begin(_: str, __: object) -> None:
        nonlocal depth
        depth += 1
        if depth > limit:
            message = f"the elements of `{name}` are nested too deeply"
            raise NestingError(message, "xml_nesting")

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser = xml.parsers.expat.ParserCreate("UTF-8")
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.Parse(data, True)  # noqa: FBT003  as expat wants it


# ----------------------------------------------------------------------- triple terms

_TURTLE = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|<(?!<)[^<>\s]*>|#[^\n]*|(<<|>>)",
    re.DOTALL,
)


def _triple_depth(text: str) -> int:
    """How deep triples are nested within each other in Turtle or its relatives."""
    steps = (
        1 if found[1] == "<<" else -1 for found in _TURTLE.finditer(text) if found[1]
    )
    return max(accumulate(steps), default=0)


def is_deep(text: str) -> bool:
    """Whether triples are nested within each other beyond the limit."""
    if "<<" not in text:
        return False
    limit = input_limits().nesting
    return text.count("<<") > limit and _triple_depth(text) > limit


def require_shallow_triples(name: str, text: str) -> None:
    """Refuse triples within triples within triples, beyond the limit.

    Raises:
        NestingError: they are.
    """
    if is_deep(text):
        raise NestingError(f"triples of `{name}` are nested too deeply", "nesting")


class Shallow:
    """A stream of Turtle or its relatives without triples that are nested deeply."""

    def __init__(self, stream: Stream, name: str, whole: Callable[[], str]) -> None:
        """Watch a stream.

        Args:
            stream: what is read.
            name: what messages call the file.
            whole: the whole text, for a look at it where it has many such triples.
        """
        self._stream = stream
        self._name = name
        self._whole = whole
        self._seen = 0
        self._is_known = False

    def read(self, size: int, /) -> bytes:
        """The next bytes.

        Raises:
            NestingError: the file has triples that are nested too deeply.
        """
        block = self._stream.read(size)
        if not self._is_known and b"<<" in block:
            self._seen += block.count(b"<<")
            if self._seen > input_limits().nesting:
                self._is_known = True
                require_shallow_triples(self._name, self._whole())
        return block
