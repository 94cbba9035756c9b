"""Reading facts and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.errors import ConstantExpressionError, Label, ParseError
from evermat.functions import FUNCTIONS, FunctionError
from evermat.lang import other_notations
from evermat.lang.expressions import fold
from evermat.lang.reader import (
    COMPARISON_LEVEL,
    NAME_KINDS,
    OPERATORS,
    ExpressionReader,
)
from evermat.lang.syntax import (
    SAME_AS,
    TRIPLE,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    expression_variables,
)
from evermat.lang.terms import RDF_TYPE
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from evermat.lang.lexer import Token


EQUAL = "≈"
"""The sign of equality between constants that stand for the same thing."""


class StatementReader(ExpressionReader):
    """Reads statements one after the other."""

    _resume: int | None = None

    def begin_statement(self) -> None:
        """Forget what the last statement left."""
        self._resume = None

    def recover(self) -> bool:
        """After a mistake, go where the next statement begins; whether that is sure."""
        if self._resume is not None:
            self.go_to(self._resume)
            return True
        while not (self._at_final_dot() or self.at_open_string()):
            self.advance()
        is_sure = self._at_final_dot()
        self.advance()
        return is_sure

    def at_new_line(self) -> bool:
        """Whether a line begins here, or the text ends."""
        if self.kind == "end" or not self.position:
            return True
        previous = self.tokens[self.position - 1]
        return "\n" in self.source.text[previous.end : self.token.start]

    def _at_final_dot(self) -> bool:
        """Whether a dot is at hand that ends a statement, not one of `example.org`."""
        if self.kind == "end":
            return True
        following = self.source.text[self.token.end : self.token.end + 1]
        return self.kind == "." and (not following or following.isspace())

    def statement(self, rules: list[Rule], facts: list[Atom]) -> None:
        """Read a rule, or one or several facts."""
        start = self.token.start
        heads = self._heads()
        if self.kind == ".":
            self.advance()
            facts.extend(self._fact(head) for head in heads)
            return
        if self.kind != ":-":
            raise self._bad_separator("a head", "`:-`, `,` or `.`")
        self.advance()
        body = self._body("`,` or `.`", last=(".",))
        self.advance()
        rules.append(Rule(heads, body, self.span_since(start)))

    def query(self) -> tuple[BodyElement, ...]:
        """Read a whole text that is a conjunction."""
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
        if token.kind in NAME_KINDS and token.text != "not":
            return self._atom()
        raise self._no_head(token)

    def _no_head(self, token: Token) -> ParseError:
        if token.text in {"not", "~"}:
            return self.error("a head cannot be negated", token)
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.kind == "." and following.text in {"decl", "input", "output", "type"}:
            advice = "this looks like a Soufflé program; read it as one"
            return self.unexpected("a rule or a fact", help=advice)
        return self.unexpected("a rule or a fact")

    def _fact(self, atom: Atom) -> Atom:
        """The fact with its expressions worked out, so far as they have a value."""
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
        elements = [self._element()]
        while self.kind == ",":
            self.advance()
            elements.append(self._element())
        if self.kind not in last:
            raise self._bad_separator("a body atom", expected)
        return tuple(elements)

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
        if following in OPERATORS:
            return True
        function = FUNCTIONS.get(token.text)
        return following == "(" and function is not None and function.is_condition

    def _condition(self, first: Token, left: Expression | None) -> Condition:
        expression = self.expression(COMPARISON_LEVEL, left)
        if isinstance(expression, Call):
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
        """The mistake of `?x in (1, 2)`, `?x ≠ 2` and the like."""
        token = self.token
        advice = other_notations.WORDS.get(token.text.lower())
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
        value = self.argument()
        self.expect("]", "`]` after the object of a triple")
        span = self.span_since(opening.start)
        return Atom(TRIPLE, (subject, predicate, value), span, span)

    def _equality(self) -> Atom:
        """`?x ≈ ?y`, which is short for `same_as(?x, ?y)`."""
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
            # A forgotten dot: what follows is a statement of its own.
            self._resume = self.position
            at_end = token.kind == "end"
            found = "the end of the text" if at_end else f"`{token.text}` on a new line"
            end = self.span(previous.end - 1, previous.end)
            return ParseError(
                f"expected {expected} after {what}, found {found}",
                labels=(Label(end, "after this"),),
                help="end a statement with a dot, separate body atoms with a comma",
            )
        advice = other_notations.ARROWS.get(token.text.lower())
        if what != "a head":
            word = other_notations.WORDS.get(token.text.lower(), _COMMA)
            advice = _SECOND_BODY if token.kind == ":-" else word
        if token.kind == "unknown":
            advice = _NO_QUESTION_MARK if token.text == "?" else None
        return self.unexpected(f"{expected} after {what}", help=advice)


_COMMA = "separate body atoms with a comma"
_NO_QUESTION_MARK = "a query ends without a question mark"
_SECOND_BODY = "end the statement before with a dot; a question has no head and no `:-`"
