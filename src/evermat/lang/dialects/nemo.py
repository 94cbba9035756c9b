"""Reads the plain part of the rule language of Nemo and Rulewerk (`.rls`).

Supported are facts and rules with several heads, `~`, comparisons, arithmetic and
functions; `@prefix`, `@base`, `@import`, `@export`, `@output`, `@parameter`,
`@declare`, and Rulewerk's `@source`. Everything else is rejected by name.

A head variable `!x` is existential; see `evermat.lang.dialects.desugar`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.errors import ProgramError, Source, raise_all
from evermat.lang.dialects.desugar import MARK, settled, value_of, with_skolem_terms
from evermat.lang.dialects.scanner import END, Scanner
from evermat.lang.lexer import Namespace, negated
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
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    atom_variables,
)
from evermat.values import (
    NUMERIC_KINDS,
    XSD,
    Constant,
    Kind,
    boolean_constant,
    constant,
    double_constant,
    integer_constant,
    language_string,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evermat.lang.lexer import Token

    Settings = dict[str, tuple[Token, Expression | tuple[str, ...]]]


# --------------------------------------------------------- terms, expressions and atoms
#
# Names are IRIs: a bare `alice` is the relative IRI `alice`, `ex:alice` is resolved by
# its prefix, and `@base` is prepended to bare names of constants and predicates.
#
# `<` directly after a word or `)` is a comparison, not the beginning of an IRI.


TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
  | (?P<comment>%[^\n]*|/\*(?:.|\n)*?\*/)
  | (?P<fstring>f(?:\"\"\"(?:.|\n)*?\"\"\"|"[^"]*"))
  | (?P<string>\"\"\"(?:.|\n)*?\"\"\"|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<iri>(?:(?<![\w)])|(?<=@base))<[^<>"{}|^`\\\s]*>)
  | (?P<null>_:\w+)
  | (?P<variable>\?[^\W\d]\w*)
  | (?P<existential>![^\W\d]\w*)
  | (?P<parameter>\$[^\W\d]\w*)
  | (?P<directive>@[A-Za-z][\w\-]*)
  | (?P<encoded>0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)
  | (?P<double>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+[fd]?|[fd]\b))
  | (?P<decimal>\d*\.\d+)
  | (?P<integer>\d+)
  | (?P<prefixed>(?:[^\W\d_][\w\-]*)?:(?!-)(?:[\w\-%]|\.(?=\w))*)
  | (?P<name>[^\W\d](?:\w|%[0-9a-fA-F]{2})*)
  | (?P<sign>:-|<-|!=|<=|>=|\^\^|\#\[|[-+*/=<>(){}\[\],.~\#!_:|])
    """,
    re.VERBOSE,
)
LANGUAGE = "Nemo's language"
AGGREGATES = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "mean": "avg",
}
"""Evermat's names of the aggregates of Nemo."""

FUNCTIONS = {
    "str": "str",
    "concat": "concat",
    "strlen": "length",
    "substr": "substr",
    "substring": "substr",
    "contains": "contains",
    "regex": "regex",
    "strstarts": "starts_with",
    "strends": "ends_with",
    "ucase": "upper",
    "lcase": "lower",
    "int": "int",
    "double": "double",
    "float": "double",
    "abs": "abs",
    "min": "min",
    "max": "max",
    "rem": "%",
}
_REPEATED = {"sum": "+", "prod": "*"}


class TermReader:
    """Parses terms, with the prefixes, the base and the parameters declared so far."""

    aggregations: list[Aggregation]
    _in_head = False

    def __init__(self, source: Source, parameters: dict[str, Constant]) -> None:
        self.tokens = Scanner(source, TOKEN, LANGUAGE)
        self.namespace = Namespace()
        self.parameters = parameters

    # ------------------------------------------------------------------- names

    def expand(self, token: Token) -> str:
        """Return the IRI of a prefixed name."""
        iri = self.namespace.expand(token.text)
        if iri is None:
            raise self.tokens.unknown_prefix(
                token, "@prefix {}: <http://example.org/> ."
            )
        return iri

    def iri(self) -> str:
        """Parse a name in any of its three spellings, as an IRI."""
        token = self.tokens.current
        match token.kind:
            case "iri":
                self.tokens.advance()
                return self.namespace.resolve(token.text[1:-1])
            case "prefixed":
                self.tokens.advance()
                return self.expand(token)
            case "name":
                self.tokens.advance()
                return self.namespace.resolve(token.text)
            case _:
                raise self.tokens.wrong("a name or an IRI")

    # ------------------------------------------------------------------- atoms

    def atom(self) -> Atom:
        """Parse a predicate with its arguments."""
        tokens = self.tokens
        name = tokens.current
        predicate = self.iri()
        predicate_span = tokens.span(name)
        arguments = self._arguments(name)
        span = tokens.span_since(name)
        return Atom(predicate, arguments, span=span, predicate_span=predicate_span)

    def _arguments(self, name: Token) -> tuple[Expression, ...]:
        tokens = self.tokens
        tokens.expect("(", f"after `{name.text}`")
        arguments: list[Expression] = []
        while not tokens.accept(")"):
            if arguments:
                tokens.expect(",", f"or `)` after an argument of `{name.text}`")
            arguments.append(self.expression())
        return tuple(arguments)

    # ------------------------------------------------------------- expressions

    def expression(self) -> Expression:
        """Parse sums of products of terms."""
        with self.tokens.nested(self.tokens.current):
            return self.tokens.operations(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self.tokens.operations(("*", "/"), self._unary)

    def _unary(self) -> Expression:
        tokens = self.tokens
        sign = tokens.accept("-", "+")
        if sign is None:
            return self._term()
        with tokens.nested(sign):
            operand = self._unary()
        if sign.text == "+":
            return operand
        span = tokens.span_since(sign)
        if isinstance(operand, Term) and operand.constant.kind in NUMERIC_KINDS:
            return Term(negated(operand.constant), span=span)
        return Call("-", (operand,), span=span)

    def _term(self) -> Expression:
        tokens = self.tokens
        token = tokens.current
        span = tokens.span(token)
        match token.kind:
            case "variable":
                tokens.advance()
                return Variable(token.text[1:], span=span)
            case "existential":
                return self.existential()
            case "parameter":
                return Term(self._parameter(), span=span)
            case "fstring":
                return self._format_string()
            case "name" if token.text == ANONYMOUS:
                tokens.advance()
                return Variable(ANONYMOUS, span=span)
            case "name" if tokens.following.text in {"(", "{"}:
                return self._call()
            case "sign":
                return self._bracketed()
            case _:
                constant = self.constant()
                return Term(constant, span=tokens.span_since(token))

    def existential(self) -> Expression:
        """Parse a variable `!x`, which is only allowed in heads."""
        token = self.tokens.current
        construct = "an existential variable outside a head is"
        raise self.tokens.unsupported(construct, token)

    def _parameter(self) -> Constant:
        token = self.tokens.advance()
        value = self.parameters.get(token.text[1:])
        if value is None:
            hint = f'add `@parameter {token.text} = "…" .`'
            message = f"the parameter `{token.text}` has no value"
            raise self.tokens.error(message, token, hint=hint)
        return value

    def _bracketed(self) -> Expression:
        tokens = self.tokens
        opening = tokens.current
        if opening.text == "#":
            return self._aggregate(opening)
        if opening.text in {"{", "["}:
            raise tokens.unsupported("maps and lists are", opening)
        if not tokens.accept("("):
            raise tokens.wrong("a term")
        inner = self.expression()
        if tokens.current.text == ",":
            raise tokens.unsupported("tuples are", opening)
        tokens.expect(")", "after an expression")
        return inner

    def _aggregate(self, opening: Token) -> Expression:
        """Parse `#sum(?value, ?other)` in a head, over distinct tuples."""
        tokens = self.tokens
        tokens.advance()
        name = tokens.current
        if name.text not in AGGREGATES:
            listed = ", ".join(f"#{each}" for each in sorted(AGGREGATES))
            hint = f"the aggregates are {listed}"
            raise tokens.unsupported(
                f"the aggregate `#{name.text}` is", name, hint=hint
            )
        if not self._in_head:
            raise tokens.unsupported("aggregates in bodies are", name)
        tokens.advance()
        values = self._arguments(name)
        if not values:
            raise tokens.error(f"`#{name.text}` needs a value", name)
        span = tokens.span_since(opening)
        target = Variable(f"_{name.text}{len(self.aggregations) + 1}", span)
        found = Aggregation(target, AGGREGATES[name.text], tuple(values), (), span)
        self.aggregations.append(found)
        return target

    def _call(self) -> Expression:
        tokens = self.tokens
        name = tokens.current
        function = FUNCTIONS.get(name.text.lower())
        repeated = _REPEATED.get(name.text.lower())
        if tokens.following.text == "{":
            raise tokens.unsupported("maps are", name)
        if function is None and repeated is None:
            hint = "the functions are " + ", ".join(map(str.upper, sorted(FUNCTIONS)))
            construct = f"the function `{name.text}` is"
            raise tokens.unsupported(construct, name, hint=hint)
        tokens.advance()
        arguments = self._arguments(name)
        span = tokens.span_since(name)
        if repeated is None:
            return Call(function or name.text, arguments, span=span)
        if not arguments:
            raise tokens.error(f"`{name.text}` needs an argument", name)
        total = arguments[0]
        for argument in arguments[1:]:
            tokens.count_operation(name)
            total = Call(repeated, (total, argument), span=span)
        return total

    # --------------------------------------------------------------- constants

    def constant(self) -> Constant:
        """Parse a name, a number, a literal, a Boolean or a null."""
        tokens = self.tokens
        token = tokens.current
        if token.kind == "name" and token.text in {"true", "false"}:
            tokens.advance()
            return boolean_constant(value=token.text == "true")
        if token.kind in {"iri", "prefixed", "name"}:
            return Constant(Kind.IRI, self.iri())
        if token.kind == "string":
            return self._literal()
        read = _PLAIN.get(token.kind)
        if read is None:
            raise tokens.wrong("a term")
        tokens.advance()
        return read(token.text)

    def _literal(self) -> Constant:
        tokens = self.tokens
        text = tokens.string(tokens.advance())
        tag = tokens.current
        if tag.kind == "directive" and tag.start == tokens.previous.end:
            tokens.advance()
            return language_string(text, tag.text[1:])
        if tokens.accept("^^"):
            return literal(text, self.iri())
        return Constant(Kind.STRING, text)

    def _format_string(self) -> Expression:
        """Parse `f"a{?x}b"` as a concatenation; `{{` and `}}` are braces."""
        tokens = self.tokens
        token = tokens.advance()
        width = 4 if token.text.startswith('f"""') else 2
        position, end = token.start + width, token.end - width + 1
        parts: list[Expression] = []
        text = ""
        while position < end:
            two = tokens.source.text[position : min(position + 2, end)]
            if two in {"{{", "}}"}:
                text += two[0]
                position += 2
            elif two.startswith("{"):
                parts.append(Term(Constant(Kind.STRING, text)))
                text = ""
                position, inner = self._inserted(token, position + 1, end)
                parts.append(inner)
            else:
                text += two[0]
                position += 1
        parts.append(Term(Constant(Kind.STRING, text)))
        kept = tuple(part for part in parts if not _is_empty_string(part))
        return Call("concat", kept or (parts[0],), span=tokens.span(token))

    def _inserted(self, token: Token, start: int, end: int) -> tuple[int, Expression]:
        """Parse an expression in braces; return it after the offset of its end."""
        tokens = self.tokens
        close = tokens.source.text.find("}", start, end)
        if close < 0:
            raise tokens.error("a `{` in a format string is not closed", token)
        outer = self.tokens
        self.tokens = Scanner(outer.source, TOKEN, LANGUAGE, start=start, end=close)
        try:
            inner = self.expression()
            self.tokens.expect("", "after an expression in a format string")
        finally:
            self.tokens = outer
        return close + 1, inner


def _is_empty_string(part: Expression) -> bool:
    return isinstance(part, Term) and part.constant == Constant(Kind.STRING, "")


_PLAIN: dict[str, Callable[[str], Constant]] = {
    "integer": lambda text: literal(text, XSD + "integer"),
    "encoded": lambda text: integer_constant(int(text, 0)),
    "decimal": lambda text: literal(text, XSD + "decimal"),
    "double": lambda text: double_constant(float(text.rstrip("fd"))),
    "null": lambda text: Constant(Kind.BLANK, text[2:]),
}


# --------------------------------------------------------------------------- directives
#
# Options of a file become options of a `DataSource` or `DataSink`: `form`, `delimiter`,
# `quoting`, `header`, `types`, `compression`, `limit`, `rows` and `values`;
# `docs/other_syntaxes.md` lists them.


_TABLES = {"csv": ",", "tsv": "\t", "dsv": None}
_RDF = {"rdf", "ntriples", "nquads", "turtle", "trig", "rdfxml"}
_COLUMN_TYPES = {
    "any": "any",
    "rdf": "any",
    "string": "string",
    "int": "integer",
    "integer": "integer",
    "double": "double",
    "float": "double",
    "float64": "double",
    "skip": "skip",
}
_COMPRESSIONS = {"gzip", "none"}


class FileReader(TermReader):
    """Parses directives."""

    def __init__(self, source: Source, parameters: dict[str, Constant]) -> None:
        super().__init__(source, dict(parameters))
        self._given = frozenset(parameters)
        self.declarations: list[Declaration] = []
        self.sinks: list[DataSink] = []
        self._sources: list[DataSource] = []

    def directive(self) -> None:
        """Parse one directive with its final dot."""
        tokens = self.tokens
        token = tokens.current
        read = {
            "@prefix": self._prefix,
            "@base": self._base,
            "@import": self._import,
            "@export": self._export,
            "@output": self._output,
            "@source": self._source,
            "@declare": self._declare,
            "@parameter": self._define_parameter,
        }.get(token.text)
        if read is None:
            raise tokens.unsupported(f"the directive `{token.text}` is", token)
        tokens.advance()
        read(token)
        tokens.expect(".", f"after `{token.text}`")

    # ------------------------------------------------------ names and parameters

    def _prefix(self, _: Token) -> None:
        token = self.tokens.expect_kind("prefixed", "a prefix such as `ex:`")
        if not token.text.endswith(":"):
            raise self.tokens.error("a prefix ends with `:`", token)
        iri = self.tokens.expect_kind("iri", "an IRI such as `<http://example.org/>`")
        self.namespace.prefixes[token.text[:-1]] = self.namespace.resolve(
            iri.text[1:-1]
        )

    def _base(self, _: Token) -> None:
        iri = self.tokens.expect_kind("iri", "an IRI such as `<http://example.org/>`")
        self.namespace.base = iri.text[1:-1]

    def _define_parameter(self, _: Token) -> None:
        token = self.tokens.expect_kind("parameter", "a parameter such as `$name`")
        name = token.text[1:]
        if not self.tokens.accept("="):
            if name not in self._given:
                message = f"the parameter `{token.text}` has no value"
                hint = f'write `@parameter {token.text} = "…" .` or give a value'
                raise self.tokens.error(message, token, hint=hint)
            return
        value = value_of(self.expression())
        if name not in self._given:
            self.parameters[name] = value

    def _declare(self, _: Token) -> None:
        """Parse `@declare p(any, integer)`, from older versions of Nemo."""
        tokens = self.tokens
        first = tokens.current
        predicate = self.iri()
        tokens.expect("(", f"after `{first.text}`")
        types: list[str] = []
        while not tokens.accept(")"):
            if types:
                tokens.expect(",", "between types")
            types.append(self._column_type(tokens.expect_kind("name", "a type")))
        span = tokens.span_since(first)
        declaration = Declaration(predicate, len(types), tuple(types), span=span)
        self.declarations.append(declaration)

    def _column_type(self, token: Token) -> str:
        column = _COLUMN_TYPES.get(token.text)
        if column is None:
            construct = f"the column type `{token.text}` is"
            hint = "the types are any, string, int, double and skip"
            raise self.tokens.unsupported(construct, token, hint=hint)
        return column

    # ------------------------------------------------------------------- files

    def sources_with(self, arities: Mapping[str, int]) -> Iterator[DataSource]:
        """Yield the sources; columns without declared types can have any."""
        for source in self._sources:
            options = dict(source.options)
            arity = arities.get(source.predicate)
            if "types" not in options and arity is not None and "form" not in options:
                options["types"] = ",".join(["any"] * arity)
            yield replace(source, options=tuple(options.items()))

    def _import(self, directive: Token) -> None:
        tokens = self.tokens
        predicate = self.iri()
        tokens.expect(":-", "after the predicate of an import")
        form, settings = self._format()
        values = self._given_values()
        options = self._options(form, settings)
        options["rows"] = "lenient"
        if "resource" not in settings:
            raise tokens.error("an import needs a `resource`", form)
        path = self._text(settings, "resource", values)
        span = tokens.span_since(directive)
        source = DataSource(predicate, path, tuple(options.items()), span=span)
        self._sources.append(source)

    def _export(self, directive: Token) -> None:
        tokens = self.tokens
        predicate = self.iri()
        tokens.expect(":-", "after the predicate of an export")
        form, settings = self._format()
        values = self._given_values()
        options = self._options(form, settings)
        options["values"] = "terms"
        path = f"{file_name(predicate)}.{form.text}"
        if "resource" in settings:
            path = self._text(settings, "resource", values)
        if options.get("compression") == "gzip" and not path.endswith(".gz"):
            path += ".gz"
        span = tokens.span_since(directive)
        self._add_sink(DataSink(predicate, path, tuple(options.items()), span=span))

    def _output(self, directive: Token) -> None:
        tokens = self.tokens
        while tokens.current.text != ".":
            predicate = self.iri()
            options = (("delimiter", ","), ("quoting", "double"), ("values", "terms"))
            path = f"{file_name(predicate)}.csv"
            span = tokens.span_since(directive)
            self._add_sink(DataSink(predicate, path, options, span=span))
            tokens.accept(",")

    def _add_sink(self, sink: DataSink) -> None:
        """Keep one sink per predicate and file, the last one."""
        place = (sink.predicate, sink.path)
        self.sinks = [s for s in self.sinks if (s.predicate, s.path) != place]
        self.sinks.append(sink)

    def _source(self, directive: Token) -> None:
        """Parse Rulewerk's `@source p[2] : load-csv("file.csv")`."""
        tokens = self.tokens
        predicate = self.iri()
        tokens.expect("[", "before the number of columns")
        arity = int(tokens.expect_kind("integer", "the number of columns").text)
        tokens.expect("]", "after the number of columns")
        tokens.expect(":", "before the kind of source")
        first = tokens.expect_kind("name", "`load-csv` or `load-rdf`")
        kind = first.text
        while tokens.accept("-"):
            kind += "-" + tokens.expect_kind("name", "`load-csv` or `load-rdf`").text
        if kind not in {"load-csv", "load-tsv", "load-rdf"}:
            raise tokens.unsupported(f"the source `{kind}` is", first)
        tokens.expect("(", f"after `{kind}`")
        file = tokens.expect_kind("string", "the name of a file")
        tokens.expect(")", "after the name of a file")
        options = {"form": "rdf"}
        if kind != "load-rdf":
            options = {
                "delimiter": "," if kind == "load-csv" else "\t",
                "quoting": "double",
                "types": ",".join(["any"] * arity),
                "rows": "lenient",
            }
        span = tokens.span_since(directive)
        path = tokens.string(file)
        source = DataSource(predicate, path, tuple(options.items()), span=span)
        self._sources.append(source)

    def _format(self) -> tuple[Token, Settings]:
        """Parse `csv { key = value, … }`."""
        tokens = self.tokens
        form = tokens.expect_kind("name", "a format such as `csv`")
        if form.text not in _TABLES and form.text not in _RDF:
            raise tokens.unsupported(f"the format `{form.text}` is", form)
        tokens.expect("{", f"after `{form.text}`")
        settings: Settings = {}
        while not tokens.accept("}"):
            if settings:
                tokens.expect(",", "between settings")
            key = tokens.expect_kind("name", "the name of a setting")
            tokens.expect("=", f"after `{key.text}`")
            if key.text == "format":
                settings[key.text] = (key, self._columns())
            else:
                settings[key.text] = (key, self.expression())
        return form, settings

    def _columns(self) -> tuple[str, ...]:
        """Parse `int`, `(int)` or `(any, string, skip)`, or with a last comma."""
        tokens = self.tokens
        if not tokens.accept("("):
            return (self._column_type(tokens.expect_kind("name", "a column type")),)
        columns: list[str] = []
        while not tokens.accept(")"):
            columns.append(self._column_type(tokens.expect_kind("name", "a type")))
            if not tokens.accept(","):
                tokens.expect(")", "or `,` after a column type")
                break
        return tuple(columns)

    def _given_values(self) -> dict[str, Constant]:
        """Parse `, ?a = $name, …` after a format: the values of variables in it."""
        tokens = self.tokens
        values: dict[str, Constant] = {}
        while tokens.accept(","):
            token = tokens.expect_kind("variable", "an equation such as `?a = $name`")
            tokens.expect("=", f"after `{token.text}`")
            values[token.text[1:]] = value_of(self.expression())
        return values

    def _options(self, form: Token, settings: Settings) -> dict[str, str]:
        options: dict[str, str] = {}
        if form.text in _RDF:
            options["form"] = form.text
        else:
            delimiter = _TABLES[form.text]
            if "delimiter" in settings:
                delimiter = self._text(settings, "delimiter", {})
            if delimiter is None:
                raise self.tokens.error("the format `dsv` needs a `delimiter`", form)
            options["delimiter"] = delimiter
            options["quoting"] = "double"
        for key in settings:
            self._option(key, settings, options)
        return options

    def _option(self, key: str, settings: Settings, options: dict[str, str]) -> None:
        token, value = settings[key]
        match key:
            case "resource" | "delimiter":
                return
            case "format" if isinstance(value, tuple):
                options["types"] = ",".join(value)
            case "quoting":
                text = self._text(settings, key, {})
                options["quoting"] = "double" if text == "true" else "none"
            case "ignore_headers":
                options["header"] = self._text(settings, key, {})
            case "limit":
                options["limit"] = self._number_of_rows(settings, key)
            case "compression":
                options["compression"] = self._text(settings, key, {})
                if options["compression"] not in _COMPRESSIONS:
                    construct = f"the compression `{options['compression']}` is"
                    raise self.tokens.unsupported(construct, token)
            case _:
                raise self.tokens.unsupported(f"the setting `{key}` is", token)

    def _number_of_rows(self, settings: Settings, key: str) -> str:
        text = self._text(settings, key, {})
        if not text.isdecimal():
            message = f"`{key}` is a number of rows"
            raise self.tokens.error(message, settings[key][0])
        return text

    def _text(self, settings: Settings, key: str, values: dict[str, Constant]) -> str:
        """Return the value of a setting as a plain string."""
        token, expression = settings[key]
        if isinstance(expression, tuple):
            raise self.tokens.error(f"`{key}` cannot be a tuple", token)
        return value_of(expression, values).text


def file_name(predicate: str) -> str:
    """Return a predicate as part of a file name, with signs of IRIs replaced by `_`.

    >>> file_name("https://example.org/result")
    'https___example.org_result'
    """
    return re.sub(r"[^\w.\-%]", "_", predicate)


_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_OPERATORS = _COMPARISONS | {"+", "-", "*", "/"}
_CONDITIONS = frozenset({"CONTAINS", "REGEX", "STRSTARTS", "STRENDS"})


def read_nemo(
    text: str,
    *,
    name: str = "<rules>",
    parameters: Mapping[str, object] | None = None,
) -> Program:
    """Parse a program of Nemo or Rulewerk.

    Args:
        text: the program.
        name: the name of the text in messages.
        parameters: values for `$name`; they override those in the program.

    Raises:
        ParseError: the text is not in Nemo's syntax.
        UnsupportedSyntaxError: it uses more than the plain part.

    >>> print(read_nemo("p(a). q(?x) :- p(?x), ~r(?x).").rules[0])
    q(?x) :- p(?x), not r(?x) .
    """
    given = {key: constant(value) for key, value in (parameters or {}).items()}
    return _Reader(Source(name, text), given).program()


class _Reader(FileReader):
    """Parses statements; the base class parses directives."""

    def __init__(self, source: Source, parameters: dict[str, Constant]) -> None:
        super().__init__(source, parameters)
        self._rules: list[Rule] = []
        self._facts: list[Atom] = []
        self._in_head = False
        self.aggregations: list[Aggregation] = []

    def program(self) -> Program:
        """Parse the whole text."""
        problems: list[ProgramError] = []
        while self.tokens.current.kind != END:
            try:
                self._statement()
            except ProgramError as problem:
                problems.append(problem)
                self.tokens.skip_behind(".")
        raise_all(problems)
        atoms = [*self._facts]
        for rule in self._rules:
            atoms += [*rule.heads, *rule.positive_atoms(), *rule.negated_atoms()]
        arities = {atom.predicate: atom.arity for atom in atoms}
        return Program(
            rules=tuple(self._rules),
            facts=tuple(self._facts),
            prefixes=tuple(self.namespace.prefixes.items()),
            base=self.namespace.base,
            declarations=tuple(self.declarations),
            sources=tuple(self.sources_with(arities)),
            sinks=tuple(self.sinks),
        )

    def _statement(self) -> None:
        tokens = self.tokens
        if tokens.current.text == "#[":
            self._attribute()
        if tokens.current.kind == "directive":
            self.directive()
            return
        first = tokens.current
        heads = [self._head()]
        while tokens.accept(","):
            heads.append(self._head())
        if tokens.accept(":-", "<-"):
            body = self._body()
            tokens.expect(".", "or `,` after a part of a rule's body")
            found, self.aggregations = self.aggregations, []
            parts = tuple(replace(each, body=tuple(body)) for each in found)
            span = tokens.span_since(first)
            rule = Rule(tuple(heads), parts or tuple(body), span=span)
            self._rules.append(with_skolem_terms(rule))
        else:
            tokens.expect(".", "after a fact")
            if any(variable for head in heads for variable in atom_variables(head)):
                rule = Rule(tuple(heads), (), span=tokens.span_since(first))
                self._rules.append(with_skolem_terms(rule))
            else:
                self._facts += map(settled, heads)

    def _attribute(self) -> None:
        """Skip `#[name("…")]` in front of a rule, which does not affect its meaning."""
        tokens = self.tokens
        opening = tokens.advance()
        while not tokens.accept("]"):
            if tokens.current.kind == END:
                raise tokens.error("an attribute is not closed", opening)
            tokens.advance()

    # ------------------------------------------------------------------- rules

    def _head(self) -> Atom:
        if self.tokens.current.text == "~":
            construct = "negation in heads is"
            raise self.tokens.unsupported(construct, self.tokens.current)
        self._in_head = True
        try:
            return self.atom()
        finally:
            self._in_head = False

    def existential(self) -> Expression:
        if not self._in_head:
            return super().existential()
        token = self.tokens.advance()
        return Variable(f"{MARK}{token.text[1:]}", span=self.tokens.span(token))

    def _body(self) -> list[BodyElement]:
        body = [self._element()]
        while self.tokens.accept(","):
            body.append(self._element())
        return body

    def _element(self) -> BodyElement:
        tokens = self.tokens
        first = tokens.current
        if tokens.accept("~"):
            atom = self.atom()
            return Negation(atom, span=tokens.span_since(first))
        if self._is_atom(first):
            before = tokens.position
            atom = self.atom()
            if tokens.current.text not in _OPERATORS:
                return atom
            tokens.position = before
        return self._condition(first)

    def _is_atom(self, token: Token) -> bool:
        is_name = token.kind in {"name", "prefixed", "iri"}
        is_call = is_name and self.tokens.following.text == "("
        return is_call and token.text not in _CONDITIONS

    def _condition(self, first: Token) -> Condition:
        tokens = self.tokens
        left = self.expression()
        if tokens.current.text not in _COMPARISONS:
            if isinstance(left, Call) and first.text in _CONDITIONS:
                return Condition(left, span=left.span)
            raise tokens.wrong("a comparison such as `=` or `<`")
        operator = tokens.advance().text
        right = self.expression()
        span = tokens.span_since(first)
        return Condition(Call(operator, (left, right), span=span), span=span)
