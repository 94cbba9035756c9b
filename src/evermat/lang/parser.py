"""The parser; the grammar is in `docs/language.md`.

Parsing continues after a statement with a syntax error, and statements without errors
are checked, so that one report contains all the mistakes of a text.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import (
    ConstantExpressionError,
    EvermatError,
    IncludeError,
    Label,
    ParseError,
    Source,
    raise_all,
)
from evermat.errors.wording import did_you_mean
from evermat.functions import FUNCTIONS, FunctionError, own_functions
from evermat.lang.checks import find_errors
from evermat.lang.directives import DIRECTIVES, Directives
from evermat.lang.lexer import RDF_TYPE, Namespace, Token
from evermat.lang.reader import (
    COMPARISON_LEVEL,
    FOREIGN_AGGREGATES,
    FOREIGN_ARROWS,
    FOREIGN_WORDS,
    NAME_KINDS,
    OPERATORS,
    ExpressionReader,
    query_of_another_language,
)
from evermat.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    ANONYMOUS,
    FALSE,
    QUAD,
    SAME_AS,
    TRIPLE,
    TRIPLE_ARITY,
    Aggregation,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    contradiction,
    expression_variables,
    fold,
    is_contradiction,
)
from evermat.runtime import collection_paused
from evermat.runtime.input_limits import (
    PathNotAllowedError,
    ProgramSizeError,
    input_limits,
    require_allowed,
    require_unpacked,
)
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.errors import ProgramError
    from evermat.values import Constant


# ---------------------------------------------------------------------- facts and rules


def _with_target(found: Aggregation, element: Condition) -> Aggregation | None:
    """Return the aggregate of an equation whose other side is a variable."""
    call = element.expression
    if call.function != "=" or found.target not in call.arguments:
        return None
    left, right = call.arguments
    other = right if left == found.target else left
    if not isinstance(other, Variable) or other.name in {ANONYMOUS, found.target.name}:
        return None
    return replace(found, target=other, span=element.span)


def _without_true(call: Call) -> Call:
    """Drop `= true` after a call of a condition in Python: `condition(?x) = true`."""
    if call.function != "=" or call.arguments[1] != Term(boolean_constant(value=True)):
        return call
    inner = call.arguments[0]
    if not isinstance(inner, Call) or inner.function not in own_functions():
        return call
    return inner if FUNCTIONS[inner.function].is_condition else call


EQUAL = "≈"
"""The infix sign of `same_as`."""


class StatementReader(ExpressionReader):
    """Reads one statement after the other."""

    _resume: int | None = None
    _aggregations: list[Aggregation] | None = None
    _inner = 0

    def begin_statement(self) -> None:
        """Reset the state of the previous statement."""
        self._resume = None
        self._aggregations = None
        self._inner = 0

    def recover(self) -> bool:
        """Skip to the next statement after a mistake; return whether it is certain."""
        if self._resume is not None:
            self.go_to(self._resume)
            return True
        while not (self._at_final_dot() or self.at_open_string()):
            self.advance()
        is_sure = self._at_final_dot()
        self.advance()
        return is_sure

    def at_new_line(self) -> bool:
        """Return whether a line begins here, or the text ends."""
        if self.kind == "end" or not self.position:
            return True
        previous = self.tokens[self.position - 1]
        return "\n" in self.source.text[previous.end : self.token.start]

    def _at_final_dot(self) -> bool:
        """Return whether the current dot ends a statement, unlike in `example.org`."""
        if self.kind == "end":
            return True
        following = self.source.text[self.token.end : self.token.end + 1]
        return self.kind == "." and (not following or following.isspace())

    def statement(self, rules: list[Rule], facts: list[Atom]) -> None:
        """Read a rule, or one or several facts."""
        start = self.token.start
        self._aggregations = []
        heads = self._heads()
        in_heads, self._aggregations = self._aggregations, None
        if self.kind == "." and in_heads:
            raise self._no_fact(in_heads[0])
        if self.kind == ".":
            for head in heads:
                if is_contradiction(head.predicate):
                    raise self._false_fact(head)
            self.advance()
            facts.extend(self._fact(head) for head in heads)
            return
        if self.kind != ":-":
            raise self._bad_separator("a head", "`:-`, `,` or `.`")
        self.advance()
        body = self._body("`,` or `.`", last=(".",))
        self.advance()
        rules.append(Rule(heads, (*body, *in_heads), self.span_since(start)))

    def query(self) -> tuple[BodyElement, ...]:
        """Read a whole text as a conjunction."""
        body = self._body("`,` or the end", last=(".", "end"))
        if self.kind == ".":
            self.advance()
        self.expect("end", "the end of the query")
        return body

    # -- heads

    def _heads(self) -> tuple[Atom, ...]:
        heads = [self._head()]
        while self.kind == ",":
            self.advance()
            heads.append(self._head())
        return tuple(heads)

    def _head(self) -> Atom:
        self.begin_element()
        if self.kind == "[":
            return self._triple()
        token = self.token
        if self.next_kind() == EQUAL and self.at_operand():
            return self._equality()
        if token.kind == "name" and token.text == FALSE:
            return self._contradiction()
        if token.kind in NAME_KINDS and token.text != "not":
            return self._atom()
        raise self._no_head(token)

    def _contradiction(self) -> Atom:
        """Read `false` with its arguments, which describe a contradiction."""
        start = self.advance().start
        arguments = self.arguments(f"`{FALSE}`") if self.kind == "(" else ()
        return contradiction(*arguments, span=self.span_since(start))

    def _false_fact(self, head: Atom) -> ParseError:
        return ParseError(
            f"`{FALSE}` is no fact",
            labels=() if head.span is None else (Label(head.span),),
            reason=f"`{FALSE}` is the head of a rule whose body must never hold",
            help=f"write `{FALSE} :- ...`",
        )

    def _no_head(self, token: Token) -> ParseError:
        if token.text in {"not", "~"}:
            return self.error("a head cannot be negated", token)
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.kind == "." and following.text in {"decl", "input", "output", "type"}:
            advice = "this looks like a Soufflé program; read it as one"
            return self.unexpected("a rule or a fact", help=advice)
        return self.unexpected("a rule or a fact")

    def _fact(self, atom: Atom) -> Atom:
        """Evaluate the expressions of a fact that have a value."""
        if not any(isinstance(argument, Call) for argument in atom.arguments):
            return atom
        arguments = tuple(self._worked_out(argument) for argument in atom.arguments)
        return Atom(atom.predicate, arguments, atom.span, atom.predicate_span)

    def _worked_out(self, expression: Expression) -> Expression:
        if any(expression_variables(expression)):
            return expression
        try:
            return fold(expression)
        except FunctionError as problem:
            span = expression.span
            labels = () if span is None else (Label(span),)
            self.problems.append(
                ConstantExpressionError(problem.message, labels=labels)
            )
            return expression

    # -- bodies

    def _body(self, expected: str, last: tuple[str, ...]) -> tuple[BodyElement, ...]:
        elements = [*self._elements()]
        while self.kind == ",":
            self.advance()
            elements += self._elements()
        if self.kind not in last:
            raise self._bad_separator("a body atom", expected)
        return tuple(elements)

    def _elements(self) -> Iterator[BodyElement]:
        """Yield an element of a body, and the aggregates in it as separate elements."""
        outer, self._aggregations = self._aggregations, []
        element = self._element()
        found, self._aggregations = self._aggregations, outer
        if len(found) == 1 and isinstance(element, Condition):
            only = _with_target(found[0], element)
            if only is not None:
                yield only
                return
        yield from found
        yield element

    def aggregate(self, token: Token) -> Expression:
        """Read `count{ ?y : knows(?x, ?y) }` as a variable bound separately."""
        if token.text not in AGGREGATE_FUNCTIONS:
            raise self._no_aggregate(token)
        outer = self._aggregations
        if outer is None:
            return super().aggregate(token)
        self.advance()
        self.advance()
        values = [self.argument()]
        while self.kind == ",":
            self.advance()
            values.append(self.argument())
        self._colon()
        body = self._body(f"`,` or `}}` in `{token.text}{{…}}`", last=("}",))
        self.advance()
        span = self.span_since(token.start)
        target = Variable(self._new_name(token.text), span)
        outer.append(Aggregation(target, token.text, tuple(values), body, span))
        return target

    def _colon(self) -> None:
        """Skip `:`, which may be part of a token with the name after it."""
        token = self.token
        if token.kind != "prefixed" or not token.text.startswith(":"):
            advice = "as in `?n = count{ ?y : knows(?x, ?y) }`"
            raise self.unexpected("`,` or `:` after the values", help=advice)
        if token.text == ":":
            self.advance()
            return
        self.tokens[self.position] = Token(
            "name", token.text[1:], token.start + 1, token.end
        )
        self.go_to(self.position)

    def _new_name(self, function: str) -> str:
        while True:
            self._inner += 1
            name = f"_{function}{self._inner}"
            if f"?{name}" not in self.source.text:
                return name

    def _no_aggregate(self, token: Token) -> ParseError:
        listed = ", ".join(f"`{name}`" for name in AGGREGATE_FUNCTIONS)
        known = FOREIGN_AGGREGATES.get(token.text.lower())
        return self.error(
            f"there is no aggregate `{token.text}`",
            token,
            help=f"did you mean `{known}`?"
            if known
            else f"the aggregates are {listed}",
        )

    def _no_fact(self, found: Aggregation) -> ParseError:
        return ParseError(
            "a fact cannot have an aggregate",
            labels=() if found.span is None else (Label(found.span),),
            help=f"write a rule: `total(?n) :- ?n = {found.function}{{ … }} .`",
        )

    def _element(self) -> BodyElement:
        self.begin_element()
        token = self.token
        if token.kind != "~" and token.text != "not":
            return self._positive()
        self.advance()
        if self.kind == "~" or self.token.text == "not":
            raise self.error("a negation cannot be negated", self.token)
        element = self._positive()
        span = self.span_since(token.start)
        if isinstance(element, Atom):
            return Negation(element, span)
        false = Term(boolean_constant(value=False))
        return Condition(Call("=", (element.expression, false), span), span)

    def _positive(self) -> Atom | Condition:
        if self.kind == "[":
            return self._triple()
        token = self.token
        if self.next_kind() == EQUAL and self.at_operand():
            return self._equality()
        if token.kind not in NAME_KINDS or self._begins_expression(token):
            if not self.at_operand():
                raise self.unexpected("an atom or a condition")
            return self._condition(token, None)
        atom = self._atom()
        if self.kind not in OPERATORS:
            return atom
        call = Call(token.text, atom.arguments, atom.span)
        return self._condition(token, call)

    def _begins_expression(self, token: Token) -> bool:
        following = self.next_kind()
        if following in OPERATORS or following == "{":
            return True
        function = FUNCTIONS.get(token.text)
        return following == "(" and function is not None and function.is_condition

    def _condition(self, first: Token, left: Expression | None) -> Condition:
        expression = self.expression(COMPARISON_LEVEL, left)
        if isinstance(expression, Call):
            expression = _without_true(expression)
            function = FUNCTIONS.get(expression.function)
            if function is not None and function.is_condition:
                return Condition(expression, expression.span)
        foreign = self._foreign_condition()
        if foreign is not None:
            raise foreign
        text = self.source.text[first.start : self.tokens[self.position - 1].end]
        raise self.error(
            f"`{text}` is not a condition",
            first,
            help="a body has atoms, comparisons such as `?x < 3`, and `?z = ...`",
        )

    def _foreign_condition(self) -> ParseError | None:
        """Return the mistake of `?x in (1, 2)`, `?x ≠ 2` and the like."""
        token = self.token
        advice = FOREIGN_WORDS.get(token.text.lower())
        if advice is not None and token.kind == "name":
            return self.error(f"there is no `{token.text}`", token, help=advice)
        return self.foreign_operator()

    # -- atoms

    def _atom(self) -> Atom:
        token = self.token
        name = self.predicate_name()
        arguments: tuple[Expression, ...] = ()
        if self.kind == "(":
            arguments = self.arguments(f"`{token.text}`")
        span = self.span_since(token.start)
        return Atom(name, arguments, span, self.span_of(token))

    def _triple(self) -> Atom:
        opening = self.advance()
        subject = self.argument()
        self.expect(",", "`,` after the subject of a triple")
        token = self.token
        if token.text == "a" and self.next_kind() == ",":
            self.advance()
            predicate: Expression = Term(RDF_TYPE, self.span_of(token))
        else:
            predicate = self.argument()
        self.expect(",", "`,` after the predicate of a triple")
        parts = [subject, predicate, self.argument()]
        if self.kind == ",":
            self.advance()
            parts.append(self.argument())
        self.expect("]", "`]` after the object of a triple")
        span = self.span_since(opening.start)
        name = TRIPLE if len(parts) == TRIPLE_ARITY else QUAD
        return Atom(name, tuple(parts), span, span)

    def _equality(self) -> Atom:
        """Read `?x ≈ ?y`, which is short for `same_as(?x, ?y)`."""
        start = self.token.start
        left = self.operand()
        sign = self.expect(EQUAL, f"`{EQUAL}`")
        right = self.operand()
        span = self.span_since(start)
        return Atom(SAME_AS, (left, right), span, self.span_of(sign))

    # -- mistakes

    def _bad_separator(self, what: str, expected: str) -> ParseError:
        token = self.token
        previous = self.tokens[self.position - 1]
        begins_statement = token.kind in NAME_KINDS or token.kind in {"[", "at"}
        if token.kind == "end" or (self.at_new_line() and begins_statement):
            # A missing dot: a new statement begins here.
            self._resume = self.position
            at_end = token.kind == "end"
            found = "the end of the text" if at_end else f"`{token.text}` on a new line"
            end = self.span(previous.end - 1, previous.end)
            return ParseError(
                f"expected {expected} after {what}, found {found}",
                labels=(Label(end, "after this"),),
                help="end a statement with a dot, separate body atoms with a comma",
            )
        advice = FOREIGN_ARROWS.get(token.text.lower())
        if what != "a head":
            word = FOREIGN_WORDS.get(token.text.lower(), _COMMA)
            advice = _SECOND_BODY if token.kind == ":-" else word
        if token.kind == "unknown":
            advice = _NO_QUESTION_MARK if token.text == "?" else None
        return self.unexpected(f"{expected} after {what}", help=advice)


_COMMA = "separate body atoms with a comma"
_NO_QUESTION_MARK = "a query ends without a question mark"
_SECOND_BODY = "end the statement before with a dot; a query has no head and no `:-`"


class UnusedParameterError(EvermatError, TypeError):
    """A value for a parameter that does not occur in a query."""

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
        name: the name of the text in messages. If it is the path of a file, `@include`
            does not read that file again.
        folder: the folder in which `@include` finds files; by default the current one.
        prefixes: prefixes that are predefined.
        base: the initial base of relative IRIs.

    Raises:
        ParseError: if the text is not a program; its `problems` are all mistakes,
            including those in statements that could be parsed.

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
    """Read rules; facts are returned as rules with an empty body, after the others.

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
        name: the name of the text in messages.
        prefixes: prefixes that are predefined.
        base: the base of relative IRIs.
        parameters: the values of `$name`.

    Raises:
        ParseError: if the text is not a conjunction.
        UnusedParameterError: there is a value for a parameter that does not occur.
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
    if problems:
        raise_all(problems)
    for parameter in parameters or ():
        if parameter not in reader.used_parameters:
            raise UnusedParameterError(parameter)
    return body


def _read_name_directive(reader: StatementReader, directives: Directives) -> None:
    """Read `@prefix` or `@base`, which are allowed before a query."""
    token = reader.advance()
    if token.text not in {"@prefix", "@base"}:
        raise reader.error(
            f"`{token.text}` cannot stand before a query",
            token,
            help="only `@prefix` and `@base` can",
        )
    DIRECTIVES[token.text[1:]](directives, reader, token)


def check_syntax(source: Source) -> list[ProgramError]:
    """Return the syntax errors of a text, without reading included files."""
    parts = _Parts(Directives(Namespace()), follow_includes=False)
    _read_text(source, Path(), parts)
    return parts.problems


@dataclass
class _Parts:
    """The parts of a program read so far, included files among them.

    Attributes:
        root: files to include are in this folder or below it.
    """

    directives: Directives
    rules: list[Rule] = field(default_factory=list)
    facts: list[Atom] = field(default_factory=list)
    problems: list[ProgramError] = field(default_factory=list)
    included: set[Path] = field(default_factory=set)
    root: Path = field(default_factory=Path)
    follow_includes: bool = True

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of rules and facts so far."""
        return len(self.rules), len(self.facts)

    def shrink(self, sizes: tuple[int, int]) -> None:
        """Drop all rules and facts beyond these numbers."""
        del self.rules[sizes[0] :], self.facts[sizes[1] :]

    def program(self) -> Program:
        """Return all parts as a program; raise its errors.

        Statements that could not be read do not cause errors in others, so all errors
        found in the rest are errors of the whole program.
        """
        program = self._read()
        if self.problems:
            with collection_paused():
                errors = find_errors(program)
            raise_all([*self.problems, *errors])
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
"""The number of mistakes after which reading stops."""


@collection_paused()
def _read_text(source: Source, folder: Path, parts: _Parts) -> None:
    """Read statements; drop those on the same line as a mistake.

    They may be pieces of the statement with the mistake, with spurious errors.
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
    """Refuse a text with far more statements than a program, before it is parsed.

    Raises:
        ProgramSizeError: there are too many statements.
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
"""The programs that come with Evermat, by their names for `@include`."""


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
    """Return the text of a program in a UTF-8 file, which may be compressed (`.gz`).

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
