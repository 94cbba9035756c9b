"""Programs name files beside or below them, or where the caller says."""

from __future__ import annotations

import gc
import traceback
from typing import TYPE_CHECKING

import pytest

from evermat import lake
from evermat.api import KnowledgeBase
from evermat.errors import EvermatError
from evermat.errors.redaction import (
    SecretsInUse,
    keep_secret,
    keep_secret_options,
    redacted,
    without_secrets,
)
from evermat.kb.program_files import read_program, write_sinks
from evermat.lake.errors import StateError
from evermat.pipeline.config import FactMap, Output, Source, output_place
from evermat.pipeline.intake import LocalIntake
from evermat.runtime.input_limits import PathNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder of a program; beside it is a file with a secret."""
    folder = tmp_path / "own"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("hunter2,x\n")
    (tmp_path / "secret.dl").write_text("hunter2 is the password\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    return folder


PROGRAMS = [
    '@include "../secret.dl" .',
    '@include "OUTSIDE/secret.dl" .',
    '@import p "../secret.csv" .',
    '@import p "link.csv" .',
    '@import p "facts/../../secret.csv" .',
    '@import p "a\\u0000b.csv" .',
    '.decl p(x:number, y:number)\n.input p(filename="../secret.csv", delimiter=",")',
    '@import p :- csv{resource="../secret.csv"} .',
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_files_elsewhere_are_refused_unread(text: str, own: Path) -> None:
    path = own / "rules.dl"
    path.write_text(text.replace("OUTSIDE", str(own.parent)))
    with pytest.raises(PathNotAllowedError) as caught:
        KnowledgeBase(path, engine="reference")
    assert "hunter2" not in str(caught.value)
    assert "--allow-path" in str(caught.value)


def test_the_caller_may_allow_them(own: Path) -> None:
    path = own / "rules.dl"
    path.write_text('@import p "../secret.csv" .')
    kb = KnowledgeBase(path, engine="reference", allow_paths=[own.parent])
    assert len(kb.facts("p")) == 1
    kb = KnowledgeBase(engine="reference", allow_paths=[own.parent / "secret.csv"])
    kb.update(add_rules=path)
    assert len(kb.facts("p")) == 1


def test_the_caller_may_allow_them_for_a_state(own: Path) -> None:
    pytest.importorskip("deltalake")
    path = own / "rules.dl"
    path.write_text('@import p "../secret.csv" .')
    KnowledgeBase(engine="reference", state=own / "state").insert("q", [(1,)])
    kb = KnowledgeBase.open(own / "state", engine="reference")
    with pytest.raises(PathNotAllowedError):
        kb.update(add_rules=path)
    allowed = [own.parent]
    kb = KnowledgeBase.open(own / "state", engine="reference", allow_paths=allowed)
    kb.update(add_rules=path)
    assert len(kb.facts("p")) == 1


@pytest.mark.parametrize("place", ["../out.csv", "/tmp/evermat-elsewhere.csv"])  # noqa: S108
def test_exports_stay_in_their_folder(place: str, tmp_path: Path) -> None:
    program = read_program(f'p(1) . @export p "{place}" .')
    with pytest.raises(PathNotAllowedError):
        write_sinks(program, lambda _: pytest.fail("written"), tmp_path / "out")


def test_names_of_predicates_stay_names_of_files() -> None:
    # Loaded here, for the module takes the place of the function `evermat.cli.run`.
    from evermat.cli.run import file_names  # noqa: PLC0415

    odd = ["..", "../../x", "a/b", "A/B", "é" * 300, ".hidden", "\0"]
    names = list(file_names(odd).values())
    assert len({name.casefold() for name in names}) == len(odd)
    for name in names:
        assert "/" not in name
        assert "\0" not in name
        assert not name.startswith(".")
        assert len(name.encode()) <= 200
    place = output_place(Output("o", path="out/{predicate}"), "..")
    assert place == "out/_"


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:hunter2@bucket/x",
        "s3://AKIA:a/hunter2+@bucket/x",
        "jdbc:postgresql://host/db?user=u&password=hunter2",
        "jdbc:postgresql://u:hunter2@host/db",
        "jdbc:sqlserver://host;user=u;password=hunter2;x=y",
        "jdbc:oracle:thin:scott/hunter2@host",
        "{'AWS_SECRET_ACCESS_KEY': 'hunter2'}",
        'password = "hunter2"',
    ],
)
def test_secrets_are_not_shown(text: str) -> None:
    assert "hunter2" not in redacted(text)
    error = EvermatError(f"cannot reach {text}", help=text)
    assert "hunter2" not in str(error) + error.message + str(error.help)


def test_secrets_that_are_known_are_not_shown() -> None:
    keep_secret_options({"aws_secret_access_key": "hunter2hunter2", "region": "west"})
    assert redacted("west: hunter2hunter2 was refused") == "west: *** was refused"
    assert redacted("keyhunter2hunter2key") == "key***key"
    keep_secret(["p/w+d"])
    assert redacted("https://x?sig=a p%2Fw%2Bd p/w+d") == "https://x?sig=*** *** ***"
    assert redacted("?token = concat(?x, ?y)") == "?token = concat(?x, ?y)"


def test_secrets_that_are_ordinary_words_are_hidden_as_whole_words() -> None:
    keep_secret(["edges"], owner := SecretsInUse())
    assert (
        redacted("`edges` and `big_edges` of hedges")
        == "`***` and `big_edges` of hedges"
    )
    del owner
    gc.collect()
    assert redacted("the predicate `edges`") == "the predicate `edges`"


def test_secrets_of_a_state_are_hidden_as_long_as_it_is_open(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    options = {"password": "likes"}
    kb = KnowledgeBase(state=tmp_path / "s", storage_options=options)
    assert redacted("likes") == "***"
    kb.insert("p", [(1,)])
    del kb
    gc.collect()
    assert redacted("likes") == "likes"
    with pytest.raises(EvermatError):
        KnowledgeBase.open(tmp_path / "likes", storage_options=options)


def test_tracebacks_show_no_secrets() -> None:
    def fail(secret: str) -> None:  # whose text is no part of a line that is shown
        try:
            try:
                raise KeyError({"password": secret})  # noqa: TRY301
            except KeyError as error:
                message = f"no access to s3://key:{secret}@bucket"
                raise OSError(2, message) from error
        except OSError as error:
            raise StateError("open", "no access") from without_secrets(error)

    with pytest.raises(StateError) as caught:
        fail("2retnuh"[::-1])
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert "FileNotFoundError: [Errno 2] no access to s3://***@bucket" in shown
    assert "in fail" in shown


def verify_state(place: str) -> None:
    pytest.importorskip("deltalake")
    lake.verify(place, storage_options={"aws_secret_access_key": "hunter2"})


def read_source(place: str) -> None:
    source = Source("s", "csv", paths=(place,), facts=(FactMap("p"),))
    LocalIntake().take(source, source.paths, "aside")


@pytest.mark.parametrize("call", [verify_state, read_source])
def test_tracebacks_of_other_libraries_show_no_secrets(
    call: Callable[[str], None],
) -> None:
    place = "hdfs://user:hunter2@host:99999999/x"
    with pytest.raises(EvermatError) as caught:
        call(place)
    assert "99999999" in str(caught.value.__cause__)
    cause = "".join(traceback.format_exception(caught.value.__cause__))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in cause


def test_long_texts_are_redacted_in_linear_time() -> None:
    for text in (
        "token" * 20_000,
        "a" * 100_000,
        "s3://a:" * 10_000,
        "?pwd" * 20_000,
    ):
        assert redacted(text + "=") == text + "="
