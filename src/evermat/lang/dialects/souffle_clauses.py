"""Facts and rules in Soufflé's syntax.

clause      head {"," head} [":-" disjunction] "."
disjunction conjunction {";" conjunction}
conjunction literal {"," literal}
literal     "!" literal | "(" disjunction ")" | atom | constraint | "true" | "false"
constraint  argument comparison argument | "contains(a, b)" | "match(a, b)"
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import ParseError
from evermat.lang.dialects.formulas import (
    AllOf,
    AnyOf,
    Formula,
    alternatives,
    count_alternatives,
    negate,
)
from evermat.lang.syntax import (
    ANONYMOUS,
    Atom,
    Call,
    Condition,
    Expression,
    Rule,
    Term,
    Variable,
)
from evermat.lang.terms import negated
from evermat.values import (
    XSD,
    Constant,
    Kind,
    double_constant,
    integer_constant,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.lang.dialects.scanner import Scanner
    from evermat.lang.lexer import Token

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
AGGREGATES = frozenset({"count", "sum", "mean", "min", "max"})
BIT_OPERATORS = frozenset(
    {"band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"}
    | {"bnot", "lnot"}
)
FUNCTORS = {
    "cat": "concat",
    "strlen": "length",
    "substr": "substr",
    "to_string": "str",
    "to_number": "int",
    "to_unsigned": "int",
    "to_float": "double",
    "itof": "double",
    "utof": "double",
    "ftoi": "int",
    "ftou": "int",
    "itou": "int",
    "utoi": "int",
    "min": "min",
    "max": "max",
}
UNKNOWN_FUNCTORS = {
    "ord": "the functor `ord`",
    "autoinc": "the functor `autoinc`",
    "range": "the generator `range`",
    "as": "the type cast `as`",
}
_MOST_ALTERNATIVES = 1000
"""Each is a rule of its own, and their number multiplies with every `;`."""
_ARITY = {"substr": 3, "cat": None, "min": None, "max": None}


class ClauseReader:
    """Reads clauses from tokens; one reader for a whole program."""

    def __init__(self, tokens: Scanner) -> None:
        self._tokens = tokens
        self._names: dict[str, str] = {}

    def clause(self) -> list[Rule]:
        """A fact (a rule without body) or the rules that a clause stands for."""
        tokens = self._tokens
        self._names = {}
        first = tokens.current
        heads = [self._atom()]
        while tokens.accept(","):
            heads.append(self._atom())
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
        return [Rule(tuple(heads), part, span=span) for part in alternatives(body)]

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
        tokens = self._tokens
        if tokens.current.text == "!":
            with tokens.nested(tokens.advance()):
                return negate(self._literal())
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
        """A formula in parentheses, unless these belong to a comparison: `(x+1) < y`.

        Which of the two it is shows only behind the closing parenthesis.
        """
        tokens = self._tokens
        before = tokens.position
        names = dict(self._names)
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
        try:
            return self._comparison()
        except ParseError as problem:
            # The reading that got further is the one that was meant.
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
        """`contains(part, whole)` and `match(pattern, whole)`, which matches all."""
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
            # The dot within the name does not end the clause.
            tokens.advance()
            raise tokens.unsupported("components are", name)
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
        """An expression: sums of products."""
        with self._tokens.nested(self._tokens.current):
            return self._operators(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._operators(("*", "/", "%"), self._unary)

    def _operators(
        self, symbols: tuple[str, ...], operand: Callable[[], Expression]
    ) -> Expression:
        tokens = self._tokens
        found = tokens.operations(symbols, operand)
        if tokens.current.text in BIT_OPERATORS or tokens.current.text == "^":
            raise self._no_operator(tokens.current)
        return found

    def _no_operator(self, token: Token) -> Exception:
        return self._tokens.unsupported(f"the operator `{token.text}` is", token)

    def _unary(self) -> Expression:
        tokens = self._tokens
        minus = tokens.accept("-")
        if minus is None:
            return self._primary()
        with tokens.nested(minus):
            operand = self._unary()
        span = tokens.span_since(minus)
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
            raise self._aggregate(token)
        tokens.advance()
        if is_call:
            return self._functor(token)
        return Variable(self._variable_name(token.text), span=tokens.span(token))

    def _aggregate(self, token: Token) -> Exception:
        hint = "aggregate the results with Arrow, Polars or pandas"
        construct = f"the aggregate `{token.text}` is"
        return self._tokens.unsupported(construct, token, hint=hint)

    def _functor(self, name: Token) -> Expression:
        tokens = self._tokens
        if name.text in UNKNOWN_FUNCTORS:
            raise tokens.unsupported(f"{UNKNOWN_FUNCTORS[name.text]} is", name)
        function = FUNCTORS.get(name.text)
        if function is None:
            hint = "the functors are " + ", ".join(sorted(FUNCTORS))
            raise tokens.error(f"there is no functor `{name.text}`", name, hint=hint)
        arguments = self._arguments(name)
        if name.text in AGGREGATES and tokens.current.text == ":":
            raise self._aggregate(name)
        arity = _ARITY.get(name.text, 1)
        if arity is not None:
            self._require_arity(name, arguments, arity)
        if function == "substr":
            text, start, length = arguments
            arguments = (text, _counted_from_one(start), length)
        return Call(function, arguments, span=tokens.span_since(name))

    def _require_arity(
        self, name: Token, arguments: tuple[Expression, ...], arity: int
    ) -> None:
        if len(arguments) != arity:
            message = f"`{name.text}` takes {arity} arguments, not {len(arguments)}"
            raise self._tokens.error(message, name)

    def _variable_name(self, written: str) -> str:
        """A name without `?`, which Soufflé allows anywhere, distinct in its clause."""
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
    """Soufflé counts the characters of a text from 0, we count from 1."""
    one = integer_constant(1)
    if isinstance(position, Term) and position.constant.kind is Kind.INTEGER:
        return Term(integer_constant(int(position.constant.text) + 1), position.span)
    return Call("+", (position, Term(one)), span=position.span)


def _anchored(pattern: Expression) -> Expression:
    """A pattern that must match the whole text."""
    if isinstance(pattern, Term) and pattern.constant.kind is Kind.STRING:
        text = rf"^(?:{pattern.constant.text})\Z"
        return Term(Constant(Kind.STRING, text), span=pattern.span)
    before, after = (Term(Constant(Kind.STRING, text)) for text in ("^(?:", r")\Z"))
    return Call("concat", (before, pattern, after), span=pattern.span)
