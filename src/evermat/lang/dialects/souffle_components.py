"""Soufflé's components, expanded before anything is parsed.

`.init g = Graph<number>` becomes the tokens of the component's body, in which the names
of its relations, types and instances begin with `g.`: a component is a macro over
tokens, and places in errors are those of the body. What a component inherits comes
first, without the rules of relations that it overrides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from evermat.lang.dialects.scanner import END, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.lang.lexer import Token

_MOST_TOKENS = 1_000_000
"""Instances within instances multiply what is parsed."""
_DEEPEST = 50
_LISTS = frozenset({".decl", ".input", ".output", ".printsize"})
_TYPES = frozenset({".type", ".number_type", ".symbol_type"})


class _Use(NamedTuple):
    """A component with arguments, as in `.init x = C<A>` and `.comp D : C<A>`."""

    name: Token
    arguments: list[str]


class _Component(NamedTuple):
    """A definition."""

    parameters: list[str]
    bases: list[_Use]
    body: Sequence[Token]


@dataclass
class _Scope:
    """The names of an instance; the program itself is the outermost one.

    Attributes:
        bindings: the arguments of the component, by parameter.
        dropped: relations whose rules are left out, because they are overridden.
    """

    prefix: str = ""
    parent: _Scope | None = None
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    bindings: dict[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    def relation(self, name: str) -> str:
        """Return the full name of a relation."""
        if name in self.relations or self.parent is None:
            return self.prefix + name
        return self.parent.relation(name)

    def type(self, name: str) -> str:
        """Return the full name of a type."""
        if name in self.bindings:
            return self.bindings[name]
        if name in self.types or self.parent is None:
            return self.prefix + name
        return self.parent.type(name)

    def instance(self, name: str) -> str | None:
        """Return the full name of an instance, if it is one."""
        if name in self.instances:
            return self.prefix + name
        return None if self.parent is None else self.parent.instance(name)


def expand_components(scanner: Scanner) -> None:
    """Replace the instances of components in the tokens of a program by their bodies.

    Raises:
        ParseError: a definition or an instance cannot be read.
    """
    expansion = _Expansion(scanner)
    scanner.replace(lambda tokens: [*expansion.program(tokens[:-1]), tokens[-1]])


class _Expansion:
    """Expands one program."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._components: dict[str, _Component] = {}
        self._depth = 0
        self._count = 0

    def program(self, tokens: Sequence[Token]) -> list[Token]:
        """Return the tokens of a program without components."""
        if not any(token.text in {".comp", ".init"} for token in tokens):
            return list(tokens)
        scope = _Scope()
        self._declare(tokens, scope)
        return [*self._expanded(_Tokens(tokens, self._scanner), scope)]

    def _declare(self, tokens: Sequence[Token], scope: _Scope) -> None:
        """Note the names that a block declares; its components are known everywhere."""
        view = _Tokens(tokens, self._scanner)
        while view.current.kind != END:
            token = view.advance()
            if token.text == ".comp":
                name, component = view.component()
                self._components[name] = component
            elif token.text == ".init":
                scope.instances.add(view.name("an instance").text)
            elif token.text in _TYPES:
                scope.types.add(view.name("a type").text)
            elif token.text == ".decl":
                scope.relations.update(each.text for each in view.names())

    def _expanded(self, view: _Tokens, scope: _Scope) -> Iterator[Token]:
        """Yield the tokens of a block with full names, and of its instances."""
        previous: Token | None = None
        directive = ""
        while view.current.kind != END:
            if view.begins_clause(previous) and view.current.text in scope.dropped:
                previous = view.skip_clause()
                continue
            token = view.advance()
            if token.kind == "directive":
                directive = token.text
            yield from self._statement(view, token, previous, directive, scope)
            if token.text in {"(", "."}:
                directive = ""
            previous = view.last
            self._count += 1
            if self._count > _MOST_TOKENS:
                message = f"components make more than {_MOST_TOKENS:,} tokens"
                raise self._scanner.error(message, token)

    def _statement(
        self,
        view: _Tokens,
        token: Token,
        previous: Token | None,
        directive: str,
        scope: _Scope,
    ) -> Iterator[Token]:
        match token.text:
            case ".comp":
                view.component()
            case ".override":
                view.name("a relation")
            case ".init":
                yield from self._instance(view, scope)
            case _ if token.kind == "name":
                yield view.renamed(token, previous, directive, scope)
            case _:
                yield token

    def _instance(self, view: _Tokens, scope: _Scope) -> Iterator[Token]:
        name = view.name("an instance")
        view.expect("=")
        use = view.use()
        child = _Scope(f"{scope.prefix}{name.text}.", scope)
        arguments = [scope.type(each) for each in use.arguments]
        parts = [*self._inherited(use, arguments, scope, frozenset())]
        for component, _, _ in parts:
            self._declare(component.body, child)
        if self._depth >= _DEEPEST:
            raise self._scanner.error("components are nested too deeply", use.name)
        self._depth += 1
        for component, bindings, dropped in parts:
            child.bindings, child.dropped = bindings, dropped
            yield from self._expanded(_Tokens(component.body, self._scanner), child)
        self._depth -= 1

    def _inherited(
        self, use: _Use, arguments: list[str], scope: _Scope, dropped: frozenset[str]
    ) -> Iterator[tuple[_Component, dict[str, str], frozenset[str]]]:
        """Yield a component after its bases, with its arguments and what is dropped."""
        name = scope.bindings.get(use.name.text, use.name.text)
        component = self._components.get(name)
        if component is None:
            raise self._scanner.error(f"there is no component `{name}`", use.name)
        if len(arguments) != len(component.parameters):
            message = (
                f"`{name}` takes {len(component.parameters)} types, "
                f"not {len(arguments)}"
            )
            raise self._scanner.error(message, use.name)
        if self._depth >= _DEEPEST:
            raise self._scanner.error(f"`{name}` is a part of itself", use.name)
        bindings = dict(zip(component.parameters, arguments, strict=True))
        inner = _Scope(parent=scope, bindings=bindings)
        overridden = dropped | _overridden(component.body)
        self._depth += 1
        for base in component.bases:
            given = [bindings.get(each, each) for each in base.arguments]
            yield from self._inherited(base, given, inner, overridden)
        self._depth -= 1
        yield component, bindings, dropped


def _overridden(body: Sequence[Token]) -> frozenset[str]:
    return frozenset(
        after.text for token, after in pairwise(body) if token.text == ".override"
    )


class _Tokens:
    """A view of the tokens of one block."""

    def __init__(self, tokens: Sequence[Token], scanner: Scanner) -> None:
        self._tokens = tokens
        self._scanner = scanner
        self._end = scanner.end
        self._position = 0

    def _at(self, position: int) -> Token:
        is_inside = 0 <= position < len(self._tokens)
        return self._tokens[position] if is_inside else self._end

    @property
    def current(self) -> Token:
        """The next token."""
        return self._at(self._position)

    @property
    def last(self) -> Token:
        """The previous token."""
        return self._at(self._position - 1)

    def advance(self) -> Token:
        """Read a token."""
        self._position += 1
        return self._at(self._position - 1)

    def name(self, wanted: str) -> Token:
        """Read a name."""
        token = self.advance()
        if token.kind != "name":
            raise self._scanner.error(f"expected the name of {wanted}", token)
        return token

    def expect(self, text: str) -> None:
        """Read a certain token."""
        token = self.advance()
        if token.text != text:
            raise self._scanner.error(f"expected `{text}`", token)

    def names(self) -> Iterator[Token]:
        """Read names with commas between them."""
        yield self.name("a relation")
        while self.current.text == ",":
            self.advance()
            yield self.name("a relation")

    def use(self) -> _Use:
        """Read a component and its arguments."""
        return _Use(self.name("a component"), self._arguments())

    def _arguments(self) -> list[str]:
        found: list[str] = []
        if self.current.text == "<":
            self.advance()
            found.append(self.name("a type").text)
            while self.current.text == ",":
                self.advance()
                found.append(self.name("a type").text)
            self.expect(">")
        return found

    def component(self) -> tuple[str, _Component]:
        """Read a definition, behind `.comp`."""
        name, parameters = self.use()
        bases: list[_Use] = []
        if self.current.text == ":":
            self.advance()
            bases.append(self.use())
            while self.current.text == ",":
                self.advance()
                bases.append(self.use())
        self.expect("{")
        start, depth = self._position, 1
        while depth:
            token = self.advance()
            if token.kind == END:
                message = f"the component `{name.text}` is not closed"
                raise self._scanner.error(message, name)
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        body = self._tokens[start : self._position - 1]
        return name.text, _Component(parameters, bases, body)

    def begins_clause(self, previous: Token | None) -> bool:
        """Return whether a clause begins here: nothing else is behind these tokens."""
        is_atom = (
            self.current.kind == "name" and self._at(self._position + 1).text == "("
        )
        return is_atom and (
            previous is None
            or previous.kind in {"name", "string"}
            or previous.text in {".", ")", "}"}
        )

    def skip_clause(self) -> Token:
        """Go to the end of a clause; returns its last token."""
        while self.current.kind != END:
            token = self.advance()
            if token.text == "." and not self._is_within_name():
                break
        return self.last

    def _is_within_name(self) -> bool:
        """Return whether the dot that was read last joins two names."""
        before, dot, after = map(
            self._at, range(self._position - 2, self._position + 1)
        )
        return (
            before.kind == after.kind == "name"
            and before.end == dot.start
            and dot.end == after.start
        )

    def renamed(
        self, token: Token, previous: Token | None, directive: str, scope: _Scope
    ) -> Token:
        """Return a name in full: `edge`, or `g.edge`, of which more tokens are read."""
        instance = scope.instance(token.text)
        if instance is not None and self.current.text == ".":
            full, end = instance, token.end
            while self.current.text == "." and self.current.start == end:
                after = self._at(self._position + 1)
                if after.kind != "name" or after.start != self.current.end:
                    break
                full, end = f"{full}.{after.text}", after.end
                self._position += 2
            if end != token.end:
                return token._replace(text=full, end=end)
        if self.current.text == "(" or directive in _LISTS:
            return token._replace(text=scope.relation(token.text))
        is_type = previous is not None and previous.text == ":"
        if is_type or directive in _TYPES:
            return token._replace(text=scope.type(token.text))
        return token
