"""From text to programs; the grammar is in `docs/language.md`.

Reading goes on behind a statement that could not be read, and the statements that could
be are checked, so that one report has all the mistakes of a text.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import (
    EvermatError,
    IncludeError,
    Label,
    ParseError,
    Source,
    raise_all,
)
from evermat.lang.checks import find_errors
from evermat.lang.directives import DIRECTIVES, Directives
from evermat.lang.other_notations import query_of_another_language
from evermat.lang.statements import StatementReader
from evermat.lang.suggestions import did_you_mean
from evermat.lang.syntax import Program, Rule
from evermat.lang.terms import Namespace
from evermat.runtime.allowed_paths import PathNotAllowedError, require_allowed
from evermat.runtime.garbage import collection_paused
from evermat.runtime.input_limits import (
    ProgramSizeError,
    input_limits,
    require_unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.errors import ProgramError
    from evermat.lang.syntax import Atom, BodyElement
    from evermat.values import Constant


class UnusedParameterError(EvermatError, TypeError):
    """A value for a parameter that a query does not have."""

    code: ClassVar[str] = "EM107"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the query has no parameter `${name}`",
            help="check the name, or leave the value out",
        )


def parse_program(
    text: str,
    *,
    name: str = "<rules>",
    folder: Path | None = None,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
) -> Program:
    """Read a program.

    Args:
        text: the program.
        name: what messages call the text. If it is the path of a file, `@include` does
            not read that file again.
        folder: where `@include` looks for files; the current folder if not given.
        prefixes: prefixes that are known from the start.
        base: the base of relative IRIs from the start.

    Raises:
        ParseError: if the text is not a program; its `problems` are all mistakes, also
            what is wrong with statements that could be read.

    >>> parse_program("reach(?x, ?y) :- edge(?x, ?y) .").rules[0].head.predicate
    'reach'
    """
    namespace = Namespace(dict(prefixes or {}), base)
    root = folder or Path()
    parts = _Parts(Directives(namespace), included={Path(name).resolve()}, root=root)
    _read_text(Source(name, text), root, parts)
    return parts.program()


def parse_file(path: str | Path) -> Program:
    """Read a program from a UTF-8 file.

    Raises:
        ParseError: if the file is not a program.
        OSError: if the file cannot be read.
    """
    path = Path(path)
    return parse_program(_read_file(path), name=str(path), folder=path.parent)


def parse_rules(
    text: str,
    *,
    name: str = "<rules>",
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
) -> tuple[Rule, ...]:
    """Read rules; facts come out as rules with an empty body, behind the others.

    Raises:
        ParseError: if the text is not a program.
    """
    program = parse_program(text, name=name, prefixes=prefixes, base=base)
    facts = tuple(Rule((fact,), (), fact.span) for fact in program.facts)
    return program.rules + facts


def parse_query(
    text: str,
    *,
    name: str = "<query>",
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    parameters: Mapping[str, Constant] | None = None,
) -> tuple[BodyElement, ...]:
    """Read a conjunction such as `reach(?x, "c"), not blocked(?x)`.

    The final dot may be left out. `@prefix` and `@base` may come first.

    Args:
        text: the conjunction.
        name: what it is called in messages.
        prefixes: those that it may use without declaring them.
        base: what relative IRIs are relative to.
        parameters: the values of `$name`.

    Raises:
        ParseError: if the text is not a conjunction.
        UnusedParameterError: there is a value for which it has no parameter.
    """
    problems: list[ProgramError] = []
    namespace = Namespace(dict(prefixes or {}), base)
    source = Source(name, text)
    reader = StatementReader(source, namespace, problems)
    reader.parameters = parameters
    body: tuple[BodyElement, ...] = ()
    try:
        while reader.kind == "at":
            _read_name_directive(reader, Directives(namespace))
        body = reader.query()
    except ParseError as problem:
        problems.append(query_of_another_language(source) or problem)
    raise_all(problems)
    for parameter in parameters or ():
        if parameter not in reader.used_parameters:
            raise UnusedParameterError(parameter)
    return body


def _read_name_directive(reader: StatementReader, directives: Directives) -> None:
    """Read `@prefix` or `@base`, which may stand before a query."""
    token = reader.advance()
    if token.text not in {"@prefix", "@base"}:
        raise reader.error(
            f"`{token.text}` cannot stand before a query",
            token,
            help="only `@prefix` and `@base` can",
        )
    DIRECTIVES[token.text[1:]](directives, reader, token)


def check_syntax(source: Source) -> list[ProgramError]:
    """The mistakes of a text by itself; files that it includes are not read."""
    parts = _Parts(Directives(Namespace()), follow_includes=False)
    _read_text(source, Path(), parts)
    return parts.problems


@dataclass
class _Parts:
    """What has been read of a program so far, included files and all.

    Attributes:
        root: files to include are beside or below it.
    """

    directives: Directives
    rules: list[Rule] = field(default_factory=list)
    facts: list[Atom] = field(default_factory=list)
    problems: list[ProgramError] = field(default_factory=list)
    included: set[Path] = field(default_factory=set)
    root: Path = field(default_factory=Path)
    follow_includes: bool = True

    def sizes(self) -> tuple[int, int]:
        """How many rules and facts there are so far."""
        return len(self.rules), len(self.facts)

    def shrink(self, sizes: tuple[int, int]) -> None:
        """Forget all rules and facts but the first."""
        del self.rules[sizes[0] :], self.facts[sizes[1] :]

    def program(self) -> Program:
        """All of it as a program; raises what was wrong with it.

        What is missing because it could not be read makes no other statement wrong, so
        all that is found in the rest is true of the whole.
        """
        program = self._read()
        if self.problems:
            raise_all([*self.problems, *find_errors(program)])
        return program

    def _read(self) -> Program:
        said = self.directives
        return Program(
            rules=tuple(self.rules),
            facts=tuple(self.facts),
            prefixes=tuple(said.namespace.prefixes.items()),
            base=said.namespace.base,
            declarations=tuple(said.declarations),
            sources=tuple(said.sources),
            sinks=tuple(said.sinks),
        )


_MOST_PROBLEMS = 10_000
"""A text with so many mistakes is no program, and is not read to its end."""


@collection_paused()
def _read_text(source: Source, folder: Path, parts: _Parts) -> None:
    """Read statements; of those next to a mistake on its line, none is kept.

    They may be pieces of the statement with the mistake, and only seem to be wrong.
    """
    require_moderate(source)
    reader = StatementReader(source, parts.directives.namespace, parts.problems)
    before = parts.sizes()
    is_whole = True
    while reader.kind != "end" and len(parts.problems) < _MOST_PROBLEMS:
        here = parts.sizes()
        begins_line = reader.at_new_line()
        reader.begin_statement()
        try:
            if reader.kind == "at":
                _read_directive(reader, folder, parts)
            else:
                reader.statement(parts.rules, parts.facts)
        except ParseError as problem:
            foreign = query_of_another_language(source)
            parts.problems.append(foreign or problem)
            if foreign is not None:
                return
            parts.shrink(here if begins_line else before)
            is_whole = reader.recover() and reader.at_new_line()
        else:
            if not is_whole:
                parts.shrink(here)
            is_whole = True
        before = here


def require_moderate(source: Source) -> None:
    """Refuse a text that has far more statements than a program, before it is read.

    Raises:
        ProgramSizeError: it has.
    """
    limits, text = input_limits(), source.text
    rules = text.count(":-")
    ends = text.count(").") + text.count(") .")
    # Heads may have no arguments, and bodies may end with a comparison.
    if rules > limits.rules:
        raise ProgramSizeError(f"`{source.name}` has {rules:,} rules", "rules")
    if ends - rules > limits.program_facts:
        message = f"`{source.name}` has {ends - rules:,} facts"
        raise ProgramSizeError(message, "program_facts")


def _read_directive(reader: StatementReader, folder: Path, parts: _Parts) -> None:
    token = reader.advance()
    name = token.text[1:]
    if name == "include":
        _include(reader, folder, parts)
        return
    read = DIRECTIVES.get(name)
    if read is None:
        known = [*DIRECTIVES, "include"]
        listed = ", ".join(f"`@{word}`" for word in sorted(known))
        raise reader.error(
            f"unknown directive `{token.text}`",
            token,
            help=did_you_mean(name, known, before="@") or f"there are {listed}",
        )
    read(parts.directives, reader, token)


def _include(reader: StatementReader, folder: Path, parts: _Parts) -> None:
    token = reader.token
    if token.kind == "name":
        path = _ready_made(reader)
    else:
        reader.expect("string", "a file name in quotes")
        path = folder / reader.string_text(token)
    reader.expect(".", "`.` after the directive")
    if not parts.follow_includes:
        return
    if token.kind != "name":
        try:
            require_allowed(path, parts.root, (Label(reader.span_of(token)),))
        except PathNotAllowedError as problem:
            parts.problems.append(problem)
            return
    if path.resolve() in parts.included:
        return
    parts.included.add(path.resolve())
    try:
        text = _read_file(path)
    except OSError as problem:
        parts.problems.append(
            IncludeError(
                f"cannot read `{path}`: {problem.strerror}",
                labels=(Label(reader.span_of(token)),),
                help=f"the path is relative to `{folder}`",
            )
        )
        return
    _read_text(Source(str(path), text), path.parent, parts)
    reader.forget_names()


READY_MADE = {
    path.stem: path for path in (Path(__file__).parent / "ready_made").glob("*.dl")
}
"""The programs that come with Evermat, which `@include` knows by name."""


def _ready_made(reader: StatementReader) -> Path:
    token = reader.advance()
    path = READY_MADE.get(token.text)
    if path is None:
        listed = ", ".join(f"`{name}`" for name in sorted(READY_MADE))
        raise reader.error(
            f"there are no ready-made rules `{token.text}`",
            token,
            help=f"there are {listed}; the name of a file is in quotes",
        )
    return path


def program_text(path: Path) -> str:
    """The text of a program in a UTF-8 file, which may end in `.gz`.

    Raises:
        UnicodeDecodeError: if the file is not in UTF-8.
        OSError: if the file cannot be read.
    """
    if path.suffix != ".gz":
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    pieces: list[bytes] = []
    with path.open("rb") as packed, gzip.open(packed) as file:
        try:
            while piece := file.read(_PIECE):
                pieces.append(piece)
                unpacked = len(pieces) * _PIECE
                require_unpacked(path.name, packed.tell(), unpacked)
        except (EOFError, zlib.error) as error:
            raise OSError(None, f"it is not a whole gzip file ({error})") from error
    return b"".join(pieces).decode("utf-8-sig").replace("\r\n", "\n")


_PIECE = 1 << 20


def _read_file(path: Path) -> str:
    try:
        return program_text(path)
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise ParseError(
            f"`{path}` is not a UTF-8 text: line {line} has the byte "
            f"0x{problem.object[problem.start]:02x}",
            help="save the file as UTF-8",
        ) from problem
