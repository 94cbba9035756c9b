"""Directives of Nemo and Rulewerk: names, parameters, files to read and to write.

What a program says about a file becomes options of a `DataSource` or `DataSink`:
`form`, `delimiter`, `quoting`, `header`, `types`, `compression`, `limit`, `rows` and
`values`; `docs/other_syntaxes.md` lists them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.lang.dialects.evaluation import value_of
from evermat.lang.dialects.nemo_terms import TermReader
from evermat.lang.syntax import DataSink, DataSource, Declaration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.errors import Source
    from evermat.lang.lexer import Token
    from evermat.lang.syntax import Expression
    from evermat.values import Constant

    Settings = dict[str, tuple[Token, Expression | tuple[str, ...]]]

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
    """Reads directives."""

    def __init__(self, source: Source, parameters: dict[str, Constant]) -> None:
        super().__init__(source, dict(parameters))
        self._given = frozenset(parameters)
        self.declarations: list[Declaration] = []
        self.sinks: list[DataSink] = []
        self._sources: list[DataSource] = []

    def directive(self) -> None:
        """One directive with its final dot."""
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
        """`@declare p(any, integer)`, from the older versions of Nemo."""
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
        """The sources; columns that the program does not describe can be anything."""
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
        """Keep one sink per predicate and file; the last word counts."""
        place = (sink.predicate, sink.path)
        self.sinks = [s for s in self.sinks if (s.predicate, s.path) != place]
        self.sinks.append(sink)

    def _source(self, directive: Token) -> None:
        """Rulewerk's `@source p[2] : load-csv("file.csv")`."""
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
        """`csv { key = value, … }`."""
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
        """`int`, `(int)` or `(any, string, skip)`, with or without a last comma."""
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
        """`, ?a = $name, …` behind a format: what variables in it stand for."""
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
        """The value of a setting as a plain text."""
        token, expression = settings[key]
        if isinstance(expression, tuple):
            raise self.tokens.error(f"`{key}` cannot be a tuple", token)
        return value_of(expression, values).text


def file_name(predicate: str) -> str:
    """A predicate as part of a file name, signs of IRIs replaced by `_`.

    >>> file_name("https://example.org/result")
    'https___example.org_result'
    """
    return re.sub(r"[^\w.\-%]", "_", predicate)
