"""Expressions of SPARQL, for all languages that have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from evermat.errors.wording import counted
from evermat.lang.dialects.sparql_rl_conditions import COMPARISONS
from evermat.lang.syntax import Call, Expression, Term, Variable
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from evermat.lang.dialects.scanner import Scanner
    from evermat.lang.lexer import Token

_ARITIES = {
    **dict.fromkeys(("STR", "LANG", "DATATYPE", "ABS", "STRLEN", "UCASE"), (1, 1)),
    **dict.fromkeys(("LCASE", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL"), (1, 1)),
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("REGEX", "SUBSTR"), (2, 3)),
    "ISNUMERIC": (1, 1),
    "CONCAT": (1, 100),
}
"""The functions that are read, with the least and greatest number of arguments."""


class ExpressionReader(ABC):
    """Reads expressions, with functions by the names of SPARQL."""

    _tokens: Scanner

    @abstractmethod
    def _variable(self, token: Token) -> Variable:
        """Return the variable of a token."""

    @abstractmethod
    def _constant(self) -> Term:
        """Read a constant, which may have a sign."""

    def _at(self, *words: str) -> bool:
        token = self._tokens.current
        return token.kind == "name" and token.text.upper() in words

    def _accept_word(self, word: str) -> bool:
        found = self._at(word)
        if found:
            self._tokens.advance()
        return found

    def _expression(self) -> Expression:
        return self._tokens.operations(("||",), self._conjunction)

    def _conjunction(self) -> Expression:
        return self._tokens.operations(("&&",), self._comparison)

    def _comparison(self) -> Expression:
        tokens = self._tokens
        first = tokens.current
        left = self._sum()
        if tokens.current.text in COMPARISONS:
            sign = tokens.advance().text
            return Call(sign, (left, self._sum()), tokens.span_since(first))
        is_negated = self._accept_word("NOT")
        if is_negated and not self._at("IN"):
            raise tokens.wrong("`IN`")
        if not self._accept_word("IN"):
            return left
        found = Call("IN", (left, *self._operands("`IN`")), tokens.span_since(first))
        return Call("!", (found,), found.span) if is_negated else found

    def _sum(self) -> Expression:
        return self._tokens.operations(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._tokens.operations(("*", "/"), self._unary)

    def _unary(self) -> Expression:
        tokens = self._tokens
        first = tokens.current
        if first.text == "-" and tokens.following.kind in {
            "integer",
            "decimal",
            "double",
        }:
            return self._constant()
        if tokens.accept("!", "-", "+"):
            with tokens.nested(first):
                operand = self._unary()
            return Call(first.text, (operand,), tokens.span_since(first))
        if tokens.accept("("):
            with tokens.nested(first):
                inner = self._expression()
            tokens.expect(")", "at the end of a group")
            return inner
        return self._operand(first)

    def _operand(self, first: Token) -> Expression:
        tokens = self._tokens
        if first.kind == "variable":
            return self._variable(tokens.advance())
        if first.kind == "name":
            tokens.advance()
            if first.text.lower() not in {"true", "false"}:
                return self._call(first)
            truth = boolean_constant(value=first.text.lower() == "true")
            return Term(truth, tokens.span_since(first))
        if first.text == "<<":
            raise tokens.unsupported("a triple term is", first)
        term = self._constant()
        if tokens.current.text == "(":
            raise tokens.unsupported(f"the function `{first.text}` is", first)
        return term

    def _call(self, name: Token) -> Expression:
        tokens = self._tokens
        function = name.text.upper()
        if function not in _ARITIES:
            raise tokens.unsupported(f"`{name.text}` is", name)
        with tokens.nested(name):
            arguments = self._operands(f"`{name.text}`")
        least, most = _ARITIES[function]
        if not least <= len(arguments) <= most:
            message = (
                f"`{name.text}` does not take {counted(len(arguments), 'argument')}"
            )
            raise tokens.error(message, name)
        return Call(function, arguments, tokens.span_since(name))

    def _operands(self, owner: str) -> tuple[Expression, ...]:
        tokens = self._tokens
        tokens.expect("(", f"after {owner}")
        found: list[Expression] = []
        while not tokens.accept(")"):
            if found:
                tokens.expect(",", f"between the arguments of {owner}")
            found.append(self._expression())
        return tuple(found)
