"""Reads the plain part of Soufflé's language.

Supported are `.type`, `.decl` with qualifiers, `.input`, `.output`, `.printsize`, facts
and rules. `.pragma` and `.plan` only guide Soufflé's own evaluation and are ignored.
Everything else is rejected by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evermat.errors import Label, ParseError, ProgramError, Source, raise_all
from evermat.lang.dialects.desugar import (
    AllOf,
    AnyOf,
    Formula,
    alternatives,
    count_alternatives,
    may_have_no_value,
    negate,
    settled,
)
from evermat.lang.dialects.scanner import END, Scanner
from evermat.lang.dialects.souffle_components import expand_components
from evermat.lang.dialects.souffle_functors import (
    AGGREGATES,
    ARITY,
    BIT_OPERATORS,
    COMPARISONS,
    FUNCTORS,
    OPERATORS,
    UNKNOWN_FUNCTORS,
)
from evermat.lang.dialects.souffle_ranges import (
    RANGE,
    has_range,
    range_atom,
    rules_of_ranges,
    with_ranges,
)
from evermat.lang.lexer import negated
from evermat.lang.syntax import (
    ANONYMOUS,
    Aggregation,
    Atom,
    BodyElement,
    Call,
    Condition,
    DataSink,
    DataSource,
    Declaration,
    Expression,
    Program,
    Rule,
    Term,
    Variable,
    atom_variables,
    element_variables,
)
from evermat.values import (
    XSD,
    Constant,
    Kind,
    double_constant,
    integer_constant,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.errors import Span
    from evermat.lang.lexer import Token


# ---------------------------------------------------------------------- facts and rules
#
# clause      head {"," head} [":-" disjunction] "."
# disjunction conjunction {";" conjunction}
# conjunction literal {"," literal}
# literal     "!" literal | "(" disjunction ")" | atom | constraint | "true" | "false"
# constraint  argument comparison argument | "contains(a, b)" | "match(a, b)"


_MOST_ALTERNATIVES = 1000
"""Limit of disjuncts: each is a rule of its own, and every `;` multiplies their number.
"""


class ClauseReader:
    """Parses clauses from tokens; one reader for a whole program."""

    def __init__(self, tokens: Scanner) -> None:
        self._tokens = tokens
        self._names: dict[str, str] = {}
        self._aggregations: list[Aggregation | Atom] = []
        """Aggregates and ranges, which become parts of bodies."""

    def clause(self) -> list[Rule]:
        """Parse a clause: a fact (a rule without body), or one or more rules."""
        tokens = self._tokens
        self._names = {}
        self._aggregations = []
        first = tokens.current
        heads = [self._atom()]
        while tokens.accept(","):
            heads.append(self._atom())
        in_heads = tuple(self._aggregations)
        self._aggregations = []
        if tokens.current.text == "<=":
            raise tokens.unsupported("subsumptive clauses are", tokens.current)
        body: Formula = AllOf(())
        if tokens.accept(":-"):
            body = self._disjunction()
        tokens.expect(".", "after a clause")
        span = tokens.span_since(first)
        if count_alternatives(body) > _MOST_ALTERNATIVES:
            construct = f"a body with more than {_MOST_ALTERNATIVES} alternatives is"
            hint = "give a name to each `;` by a relation of its own"
            raise tokens.unsupported(construct, first, hint=hint)
        rules = [
            Rule(tuple(heads), (*part, *in_heads), span=span)
            for part in alternatives(body)
        ]
        return [*rules, *(made for rule in rules for made in with_ranges(rule))]

    def _disjunction(self) -> Formula:
        parts = [self._conjunction()]
        while self._tokens.accept(";"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _conjunction(self) -> Formula:
        parts = [self._literal()]
        while self._tokens.accept(","):
            parts.append(self._literal())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _literal(self) -> Formula:
        """Parse a literal; the aggregates in it become separate parts."""
        outer, self._aggregations = self._aggregations, []
        formula = self._plain_literal()
        found, self._aggregations = self._aggregations, outer
        return AllOf((*found, formula)) if found else formula

    def _plain_literal(self) -> Formula:
        tokens = self._tokens
        if tokens.current.text == "!":
            return self._denied()
        if tokens.current.text == "(":
            return self._group()
        if tokens.accept("true"):
            return AllOf(())
        if tokens.accept("false"):
            return AnyOf(())
        if tokens.current.text in {"contains", "match"}:
            return self._text_constraint()
        if self._is_atom():
            return self._atom()
        return self._comparison()

    def _denied(self) -> Formula:
        tokens = self._tokens
        first = tokens.advance()
        with tokens.nested(first):
            denied = self._plain_literal()
            values = AllOf((denied, *self._aggregations))
            if has_range(values):
                raise tokens.unsupported("`!` before a `range` is", first)
            if may_have_no_value(values):
                construct = "`!` before an aggregate but `count` and `sum` is"
                raise tokens.unsupported(construct, tokens.current)
            return negate(denied)

    def _is_atom(self) -> bool:
        token = self._tokens.current
        is_call = token.kind == "name" and self._tokens.following.text in {"(", "."}
        return is_call and not (
            token.text in FUNCTORS
            or token.text in UNKNOWN_FUNCTORS
            or token.text in AGGREGATES
            or token.text in BIT_OPERATORS
        )

    def _group(self) -> Formula:
        """Parse a formula in parentheses, or a comparison such as `(x+1) < y`.

        They can be distinguished only after the closing parenthesis.
        """
        tokens = self._tokens
        before = tokens.position
        names = dict(self._names)
        aggregations = list(self._aggregations)
        try:
            with tokens.nested(tokens.advance()):
                group = self._disjunction()
                tokens.expect(")", "after a group")
        except ParseError as problem:
            as_group = problem
        else:
            return group
        tokens.position = before
        self._names = names
        self._aggregations = aggregations
        try:
            return self._comparison()
        except ParseError as problem:
            # Report the error of the alternative that got further.
            raise max(problem, as_group, key=_offset) from None

    def _comparison(self) -> Condition:
        tokens = self._tokens
        first = tokens.current
        left = self.argument()
        if tokens.current.text not in COMPARISONS:
            raise tokens.wrong("a comparison such as `=` or `<`")
        operator = tokens.advance().text
        right = self.argument()
        span = tokens.span_since(first)
        return Condition(Call(operator, (left, right), span=span), span=span)

    def _text_constraint(self) -> Condition:
        """Parse `contains(part, whole)`, or `match(pattern, whole)` anchored."""
        tokens = self._tokens
        name = tokens.advance()
        arguments = self._arguments(name)
        self._require_arity(name, arguments, 2)
        part, whole = arguments
        span = tokens.span_since(name)
        if name.text == "contains":
            call = Call("contains", (whole, part), span=span)
        else:
            call = Call("regex", (whole, _anchored(part)), span=span)
        return Condition(call, span=span)

    def _atom(self) -> Atom:
        tokens = self._tokens
        name = tokens.expect_kind("name", "a relation")
        if tokens.current.text == "." and tokens.following.kind == "name":
            # A dot within the name does not end the clause.
            tokens.advance()
            raise tokens.error(f"there is no instance `{name.text}`", name)
        arguments = self._arguments(name)
        return Atom(
            name.text,
            arguments,
            span=tokens.span_since(name),
            predicate_span=tokens.span(name),
        )

    def _arguments(self, name: Token) -> tuple[Expression, ...]:
        tokens = self._tokens
        tokens.expect("(", f"after `{name.text}`")
        arguments: list[Expression] = []
        if not tokens.accept(")"):
            arguments.append(self.argument())
            while tokens.accept(","):
                arguments.append(self.argument())
            tokens.expect(")", f"after the arguments of `{name.text}`")
        return tuple(arguments)

    def argument(self) -> Expression:
        """Parse an expression; operators on bits bind less than sums of products."""
        with self._tokens.nested(self._tokens.current):
            found = self._bits(("bor",), ("bxor",), ("band",), ("bshl", "bshr"))
        if self._tokens.current.text in BIT_OPERATORS:
            raise self._no_operator(self._tokens.current)
        return found

    def _bits(self, *levels: tuple[str, ...]) -> Expression:
        tokens = self._tokens
        if not levels:
            return tokens.operations(("+", "-"), self._product)
        first = tokens.current
        left = self._bits(*levels[1:])
        while tokens.current.text in levels[0]:
            sign = tokens.advance()
            tokens.count_operation(sign)
            both = left, self._bits(*levels[1:])
            left = Call(OPERATORS[sign.text], both, span=tokens.span_since(first))
        return left

    def _product(self) -> Expression:
        return self._tokens.operations(("*", "/", "%"), self._unary)

    def _power(self) -> Expression:
        """Parse a primary expression and its exponent: `2 ^ 3 ^ 2` is `2 ^ 9`."""
        tokens = self._tokens
        base = self._primary()
        sign = tokens.accept("^")
        if sign is None:
            return base
        with tokens.nested(sign):
            exponent = self._unary()
        return Call("power", (base, exponent), span=tokens.span_since(sign))

    def _no_operator(self, token: Token) -> Exception:
        return self._tokens.unsupported(f"the operator `{token.text}` is", token)

    def _unary(self) -> Expression:
        tokens = self._tokens
        minus = tokens.accept("-", "bnot")
        if minus is None:
            return self._power()
        with tokens.nested(minus):
            operand = self._unary()
        span = tokens.span_since(minus)
        if minus.text == "bnot":
            opposite = Call("-", (operand,), span=span)
            return Call("-", (opposite, Term(integer_constant(1))), span=span)
        if isinstance(operand, Term) and operand.constant.kind is not Kind.STRING:
            return Term(negated(operand.constant), span=span)
        return Call("-", (operand,), span=span)

    def _primary(self) -> Expression:
        tokens = self._tokens
        token = tokens.current
        if token.kind in {"string", "float", "integer"}:
            tokens.advance()
            return Term(self._constant(token), span=tokens.span(token))
        if tokens.accept("("):
            inner = self.argument()
            tokens.expect(")", "after an expression")
            return inner
        if token.kind == "name":
            return self._named(token)
        raise self._not_an_argument(token)

    def _constant(self, token: Token) -> Constant:
        if token.kind == "string":
            return Constant(Kind.STRING, self._tokens.string(token))
        if token.kind == "float":
            return double_constant(float(token.text))
        digits = token.text.rstrip("u")
        if _has_base(token):
            return integer_constant(int(digits, 0))
        return literal(digits, XSD + "integer")

    def _not_an_argument(self, token: Token) -> Exception:
        constructs = {
            "[": "records are",
            "$": "algebraic data types and counters are",
            "@": "user-defined functors are",
        }
        construct = constructs.get(token.text)
        if construct is not None:
            return self._tokens.unsupported(construct, token)
        return self._tokens.wrong("a variable, a constant or an expression")

    def _named(self, token: Token) -> Expression:
        tokens = self._tokens
        is_call = tokens.following.text == "("
        if token.text in BIT_OPERATORS:
            raise self._no_operator(token)
        if token.text == "nil":
            raise tokens.unsupported("records are", token)
        if token.text in AGGREGATES and not (is_call and token.text in FUNCTORS):
            tokens.advance()
            value = None if token.text == "count" else self.argument()
            return self._aggregate(token, value)
        tokens.advance()
        if is_call:
            return self._functor(token)
        return Variable(self._variable_name(token.text), span=tokens.span(token))

    def _aggregate(self, token: Token, value: Expression | None) -> Expression:
        """Parse `sum x : { p(x, y) }` or `sum x : p(x, y)`, after the value.

        All solutions of the body count, so the tuples contain all of its variables,
        including those without a name.
        """
        tokens = self._tokens
        tokens.expect(":", f"in `{token.text}`")
        outer, self._aggregations = self._aggregations, []
        if tokens.accept("{"):
            body = self._disjunction()
            tokens.expect("}", f"after the body of `{token.text}`")
        else:
            body = self._plain_literal()
        inner, self._aggregations = (*self._aggregations,), outer
        choices = alternatives(AllOf((*inner, body)))
        if any(map(has_range, inner)) or has_range(body):
            construct = "`range` inside of an aggregate is"
            hint = "give the range a relation of its own"
            raise tokens.unsupported(construct, token, hint=hint)
        if len(choices) != 1:
            construct = "`;` inside of an aggregate is"
            hint = "give a name to the alternatives by a relation of its own"
            raise tokens.unsupported(construct, token, hint=hint)
        elements = tuple(map(self._with_names, choices[0]))
        found = [v for element in elements for v in element_variables(element)]
        values: list[Expression] = list(
            dict.fromkeys(replace(each, span=None) for each in found)
        )
        function = "avg" if token.text == "mean" else token.text
        if value is not None:
            first = Call("double", (value,)) if function == "avg" else value
            values = [first, *values] if function in {"sum", "avg"} else [first]
        if not values:
            values = [Term(integer_constant(1))]
        span = tokens.span_since(token)
        target = Variable(self._new_name("agg"), span)
        self._aggregations.append(
            Aggregation(target, function, tuple(values), elements, span)
        )
        return target

    def _with_names(self, element: BodyElement) -> BodyElement:
        """Return an atom with a name for each `_`."""
        if not isinstance(element, Atom):
            return element
        arguments = tuple(
            Variable(self._new_name("any"), each.span)
            if isinstance(each, Variable) and each.name == ANONYMOUS
            else each
            for each in element.arguments
        )
        return replace(element, arguments=arguments)

    def _new_name(self, beginning: str) -> str:
        number = len(self._names) + 1
        while f"{beginning}_{number}" in self._names.values():
            number += 1
        name = self._names[f"{beginning} {number}"] = f"{beginning}_{number}"
        return name

    def _functor(self, name: Token) -> Expression:
        tokens = self._tokens
        if name.text in UNKNOWN_FUNCTORS:
            raise tokens.unsupported(f"{UNKNOWN_FUNCTORS[name.text]} is", name)
        function = FUNCTORS.get(name.text)
        if function is None:
            hint = "the functors are " + ", ".join(sorted(FUNCTORS))
            raise tokens.error(f"there is no functor `{name.text}`", name, hint=hint)
        arguments = self._arguments(name)
        if name.text == "range":
            return self._range(name, arguments)
        if name.text in AGGREGATES and tokens.current.text == ":":
            (value,) = arguments  # `sum(x) : …`, with the value in parentheses
            return self._aggregate(name, value)
        arity = ARITY.get(name.text, 1)
        if arity is not None:
            self._require_arity(name, arguments, arity)
        if function == "substr":
            text, start, length = arguments
            arguments = (text, _counted_from_one(start), length)
        return Call(function, arguments, span=tokens.span_since(name))

    def _range(self, name: Token, arguments: tuple[Expression, ...]) -> Expression:
        """`range(low, high)`, or with a step: a variable for each of its values."""
        if len(arguments) not in {2, 3}:
            message = f"`range` takes 2 or 3 arguments, not {len(arguments)}"
            raise self._tokens.error(message, name)
        span = self._tokens.span_since(name)
        target = Variable(self._new_name("range"), span)
        self._aggregations.append(range_atom(arguments, target, span))
        return target

    def _require_arity(
        self, name: Token, arguments: tuple[Expression, ...], arity: int
    ) -> None:
        if len(arguments) != arity:
            message = f"`{name.text}` takes {arity} arguments, not {len(arguments)}"
            raise self._tokens.error(message, name)

    def _variable_name(self, written: str) -> str:
        """Return a name without `?`, which may be anywhere, unique in its clause."""
        if written == ANONYMOUS:
            return ANONYMOUS
        known = self._names.get(written)
        if known is not None:
            return known
        name = written.lstrip("?").replace("?", "_") or "v"
        while name in self._names.values() or name == ANONYMOUS:
            name += "_"
        self._names[written] = name
        return name


def _offset(problem: ParseError) -> int:
    return problem.labels[0].span.start


def _has_base(token: Token) -> bool:
    return re.match("0[xb]", token.text) is not None


def _counted_from_one(position: Expression) -> Expression:
    """Convert a position: Soufflé counts characters from 0, and Evermat from 1."""
    one = integer_constant(1)
    if isinstance(position, Term) and position.constant.kind is Kind.INTEGER:
        return Term(integer_constant(int(position.constant.text) + 1), position.span)
    return Call("+", (position, Term(one)), span=position.span)


def _anchored(pattern: Expression) -> Expression:
    """Return a pattern that must match the whole string."""
    if isinstance(pattern, Term) and pattern.constant.kind is Kind.STRING:
        text = rf"^(?:{pattern.constant.text})\Z"
        return Term(Constant(Kind.STRING, text), span=pattern.span)
    before, after = (Term(Constant(Kind.STRING, text)) for text in ("^(?:", r")\Z"))
    return Call("concat", (before, pattern, after), span=pattern.span)


_DIRECTIVES = (
    "type number_type symbol_type decl input output printsize pragma plan "
    "comp init functor limitsize lattice include once override"
)
_BEGINNINGS = frozenset({"directive", "preprocessor"})
"""Kinds of tokens that can only begin a statement."""
_TOKEN = re.compile(
    rf"""
    (?P<blank>\s+)
  | (?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?)
  | (?P<integer>(?:0x[0-9a-fA-F]+|0b[01]+|\d+)u?)
  | (?P<directive>\.(?:{"|".join(_DIRECTIVES.split())})\b)
  | (?P<preprocessor>\#\s*\w+|\b__\w+__\b)
  | (?P<name>[A-Za-z_?][\w?]*)
  | (?P<sign>:-|<:|<=|>=|!=|::|[-+*/%^!=<>(){{}}\[\],.;:|$@])
    """,
    re.VERBOSE,
)
_BASE_TYPES = {
    "number": "integer",
    "unsigned": "integer",
    "float": "double",
    "symbol": "string",
}
_REFUSED = {
    ".functor": "user-defined functors are",
    ".limitsize": "`.limitsize` is",
    ".lattice": "lattices are",
    ".include": "`.include` is",
    ".once": "`.once` is",
}
_NO_EFFECT = frozenset(
    {"btree", "brie", "inline", "no_inline", "magic", "no_magic", "overridable"}
)
_HELP_INCLUDE = "run the C preprocessor over the program first (`cpp -P`)"


def read_souffle(text: str, *, name: str = "<rules>") -> Program:
    """Parse a Soufflé program.

    Raises:
        ParseError: the text is not in Soufflé's syntax.
        UnsupportedSyntaxError: it uses more than the plain part.

    >>> print(read_souffle(".decl p(x:number)  p(x+1) :- p(x), x < 9.").rules[0])
    p(?x + 1) :- p(?x), ?x < 9 .
    """
    return _Reader(Source(name, text)).program()


@dataclass(slots=True)
class _Relation:
    """A declared relation: its columns with the names of their types."""

    name: Token
    columns: list[tuple[str, Token]]
    qualifiers: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Request:
    """A relation to read or write; `kind` is the name of the directive."""

    kind: str
    relation: Token
    options: Mapping[str, str]
    span: Span


class _Reader:
    """Parses one program; types and relations may be used before their declarations."""

    def __init__(self, source: Source) -> None:
        self._tokens = Scanner(source, _TOKEN, "Soufflé's language")
        self._clauses = ClauseReader(self._tokens)
        self._types: dict[str, str] = {}
        self._relations: dict[str, _Relation] = {}
        self._requests: list[_Request] = []
        self._rules: list[Rule] = []
        self._facts: list[Atom] = []
        self._problems: list[ProgramError] = []

    def program(self) -> Program:
        """Parse the whole text, then resolve names declared after their use."""
        expand_components(self._tokens)
        while self._tokens.current.kind != END:
            try:
                self._statement()
            except ProgramError as problem:
                self._problems.append(problem)
                self._skip_statement()
        self._require_declared()
        raise_all(self._problems)
        declarations = tuple(map(self._declaration, self._relations.values()))
        if any(h.predicate == RANGE for rule in self._rules for h in rule.heads):
            self._rules += rules_of_ranges()
        for relation in self._relations.values():
            if "eqrel" in relation.qualifiers:
                self._rules += _equivalence_rules(relation.name.text)
        return Program(
            rules=tuple(self._rules),
            facts=tuple(self._facts),
            declarations=declarations,
            sources=tuple(map(self._source, self._requests_for("input"))),
            sinks=(
                *map(self._sink, self._requests_for("output")),
                *map(self._size, self._requests_for("printsize")),
            ),
        )

    def _requests_for(self, kind: str) -> list[_Request]:
        return [request for request in self._requests if request.kind == kind]

    def _skip_statement(self) -> None:
        """Continue after the next dot or component, or at the next directive."""
        tokens = self._tokens
        depth = 0
        while True:
            token = tokens.advance()
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            # After an aggregate or a branch of a type, the statement continues.
            is_whole = token.text == "}" and tokens.current.kind == "name"
            if depth <= 0 and (
                token.text == "." or is_whole or tokens.current.kind in _BEGINNINGS
            ):
                return
            if token.kind == END:
                return

    def _statement(self) -> None:
        tokens = self._tokens
        token = tokens.current
        if token.kind == "preprocessor":
            construct = f"the preprocessor directive `{token.text}` is"
            raise tokens.unsupported(construct, token, hint=_HELP_INCLUDE)
        if token.text in _REFUSED:
            raise tokens.unsupported(_REFUSED[token.text], token)
        if token.kind == "directive":
            self._directive(tokens.advance())
            return
        for rule in self._clauses.clause():
            if _is_fact(rule):
                self._facts += map(settled, rule.heads)
            else:
                self._rules.append(rule)

    def _directive(self, directive: Token) -> None:
        match directive.text:
            case ".type":
                self._type()
            case ".number_type" | ".symbol_type":
                name = self._tokens.expect_kind("name", "the name of a type")
                self._types[name.text] = directive.text[1:].removesuffix("_type")
            case ".decl":
                self._decl()
            case ".pragma":
                self._pragma()
            case ".plan":
                self._plan()
            case _:
                self._request(directive)

    def _pragma(self) -> None:
        self._tokens.expect_kind("string", "the name of a pragma in quotation marks")
        self._tokens.accept_kind("string")

    def _plan(self) -> None:
        tokens = self._tokens
        while tokens.accept_kind("integer"):
            tokens.expect(":", "after the number of a plan")
            tokens.expect("(", "before an order of atoms")
            while not tokens.accept(")"):
                tokens.accept(",")
                tokens.expect_kind("integer", "the number of an atom")
            if not tokens.accept(","):
                return

    def _type(self) -> None:
        """Parse `.type A <: B` or `.type A = B | C`; `.type A` is a symbol."""
        tokens = self._tokens
        name = tokens.expect_kind("name", "the name of a type")
        base = "symbol"
        if tokens.accept("<:", "="):
            if tokens.current.text == "[":
                raise tokens.unsupported("record types are", tokens.current)
            base = tokens.expect_kind("name", "a type").text
            self._refuse_branch()
            while tokens.accept("|"):
                tokens.expect_kind("name", "a type")
                self._refuse_branch()
        self._types[name.text] = base

    def _refuse_branch(self) -> None:
        tokens = self._tokens
        if tokens.current.text == "{":
            raise tokens.unsupported("algebraic data types are", tokens.previous)

    def _decl(self) -> None:
        tokens = self._tokens
        names = [tokens.expect_kind("name", "the name of a relation")]
        while tokens.accept(","):
            names.append(tokens.expect_kind("name", "the name of a relation"))
        columns: list[tuple[str, Token]] = []
        tokens.expect("(", f"after `{names[-1].text}`")
        while not tokens.accept(")"):
            if columns:
                tokens.expect(",", "between columns")
            column = tokens.expect_kind("name", "the name of a column")
            tokens.expect(":", f"after the column `{column.text}`")
            columns.append((column.text, tokens.expect_kind("name", "a type")))
        qualifiers = self._qualifiers(names)
        for name in names:
            self._relations[name.text] = _Relation(name, columns, qualifiers)

    def _qualifiers(self, names: list[Token]) -> set[str]:
        tokens = self._tokens
        qualifiers: set[str] = set()
        while tokens.current.kind == "name" and tokens.following.text != "(":
            qualifier = tokens.advance()
            if qualifier.text in {"input", "output", "printsize"}:
                span = tokens.span(qualifier)
                self._requests += [
                    _Request(qualifier.text, name, {}, span) for name in names
                ]
            elif qualifier.text == "choice":
                raise tokens.unsupported("`choice-domain` is", qualifier)
            elif qualifier.text == "eqrel" or qualifier.text in _NO_EFFECT:
                qualifiers.add(qualifier.text)
            else:
                construct = f"the qualifier `{qualifier.text}` is"
                raise tokens.unsupported(construct, qualifier)
        return qualifiers

    def _request(self, directive: Token) -> None:
        """Parse `.input A, B(key=value, …)` and similar directives."""
        tokens = self._tokens
        names = [tokens.expect_kind("name", "the name of a relation")]
        while tokens.accept(","):
            names.append(tokens.expect_kind("name", "the name of a relation"))
        if tokens.current.text == "." and tokens.following.kind == "name":
            after = tokens.following
            if after.start == tokens.current.end:
                message = f"there is no instance `{names[-1].text}`"
                raise tokens.error(message, names[-1])
        options = self._options() if tokens.accept("(") else {}
        span = tokens.span_since(directive)
        kind = directive.text[1:]
        self._requests += [_Request(kind, name, options, span) for name in names]

    def _options(self) -> dict[str, str]:
        tokens = self._tokens
        options: dict[str, str] = {}
        while not tokens.accept(")"):
            if options:
                tokens.expect(",", "between options")
            key = tokens.expect_kind("name", "the name of an option")
            tokens.expect("=", f"after `{key.text}`")
            value = tokens.advance()
            if value.kind not in {"string", "name", "integer"}:
                tokens.position -= 1
                raise tokens.wrong("the value of an option")
            is_string = value.kind == "string"
            text = tokens.string(value) if is_string else value.text
            if key.text not in _OPTIONS:
                raise tokens.unsupported(f"the option `{key.text}` is", key)
            if text not in _OPTIONS[key.text] and _OPTIONS[key.text]:
                construct = f"`{key.text}={text}` is"
                raise tokens.unsupported(construct, value)
            options[key.text] = text
        return options

    def _declaration(self, relation: _Relation) -> Declaration:
        return Declaration(
            relation.name.text,
            len(relation.columns),
            self._column_types(relation),
            tuple(name for name, _ in relation.columns),
            span=self._tokens.span(relation.name),
        )

    def _column_types(self, relation: _Relation) -> tuple[str, ...]:
        return tuple(self._base_type(token) for _, token in relation.columns)

    def _base_type(self, token: Token) -> str:
        seen: set[str] = set()
        name = token.text
        while name not in _BASE_TYPES:
            if name in seen or name not in self._types:
                raise self._tokens.error(f"there is no type `{token.text}`", token)
            seen.add(name)
            name = self._types[name]
        return _BASE_TYPES[name]

    def _require_declared(self) -> None:
        """Report every relation that is used but not declared, once."""
        used: dict[str, Span | None] = {}
        for rule in self._rules:
            for atom in rule.atoms():
                used.setdefault(atom.predicate, atom.predicate_span)
        for fact in self._facts:
            used.setdefault(fact.predicate, fact.predicate_span)
        for request in self._requests:
            span = self._tokens.span(request.relation)
            used.setdefault(request.relation.text, span)
        for name, place in used.items():
            if name not in self._relations and place is not None:
                message = f"relation `{name}` is not declared"
                hint = f"add `.decl {name}(…)`"
                problem = ParseError(message, labels=(Label(place),), help=hint)
                self._problems.append(problem)

    def _source(self, request: _Request) -> DataSource:
        name = request.relation.text
        types = ",".join(self._column_types(self._relations[name]))
        form = {"types": types, **_file_form(request.options)}
        path = request.options.get("filename", f"{name}.facts")
        return DataSource(name, path, tuple(form.items()), span=request.span)

    def _sink(self, request: _Request) -> DataSink:
        name = request.relation.text
        form = _file_form(request.options)
        if form.get("header") == "true":
            columns = self._relations[name].columns
            form["names"] = ",".join(column for column, _ in columns)
        path = request.options.get("filename", f"{name}.csv")
        if form.get("compression") == "gzip" and not path.endswith(".gz"):
            path += ".gz"
        if request.options.get("IO") == "stdout":
            path = "-"
        return DataSink(name, path, tuple(form.items()), span=request.span)

    def _size(self, request: _Request) -> DataSink:
        options = (("values", "size"),)
        return DataSink(request.relation.text, "-", options, span=request.span)


_OPTIONS: dict[str, frozenset[str]] = {
    "IO": frozenset({"file", "stdout"}),
    "filename": frozenset(),
    "delimiter": frozenset(),
    "rfc4180": frozenset({"true", "false"}),
    "headers": frozenset({"true", "false"}),
    "compress": frozenset({"true", "false"}),
}


def _file_form(options: Mapping[str, str]) -> dict[str, str]:
    form = {
        "delimiter": options.get("delimiter", "\t"),
        "quoting": "double" if options.get("rfc4180") == "true" else "none",
        "values": "plain",
    }
    if options.get("headers") == "true":
        form["header"] = "true"
    if options.get("compress") == "true":
        form["compression"] = "gzip"
    return form


def _is_fact(rule: Rule) -> bool:
    return not rule.body and not any(
        variable for head in rule.heads for variable in atom_variables(head)
    )


def _equivalence_rules(name: str) -> list[Rule]:
    """Return the rules of `eqrel`: reflexive, symmetric and transitive."""
    x, y, z = Variable("x"), Variable("y"), Variable("z")
    related = Atom(name, (x, y))
    return [
        Rule((Atom(name, (x, x)), Atom(name, (y, x))), (related,)),
        Rule((Atom(name, (x, z)),), (related, Atom(name, (y, z)))),
    ]
