"""What XML allows and pyoxigraph does not, rewritten so that it does.

pyoxigraph refuses files that are not in UTF-8, and entities declared between single
quotes. Ontology editors and older tools write both.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

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
