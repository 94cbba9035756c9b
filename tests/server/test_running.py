"""A server on a port: the feed, clients that go away, and the command."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from evermat import KnowledgeBase
from evermat.cli import run
from served import RULES, paths, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


def post(address: str, path: str, body: object) -> dict[str, Any]:
    with closing(http.client.HTTPConnection(address.removeprefix("http://"))) as line:
        headers = {"Content-Type": "application/json"}
        line.request("POST", path, json.dumps(body), headers)
        found: dict[str, Any] = json.loads(line.getresponse().read())
        return found


@contextmanager
def feed(address: str, path: str, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    """The events of a feed, one after the other."""
    line = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    line.request("GET", path, headers=headers)
    answer = line.getresponse()
    assert answer.status == 200

    def events() -> Iterator[dict[str, str]]:
        event: dict[str, str] = {}
        while text := answer.readline().decode().rstrip("\n") or event:
            if isinstance(text, str):
                name, _, value = text.partition(": ")
                event[name] = value
            else:
                yield event
                event = {}

    try:
        yield events()
    finally:
        line.close()


def test_the_feed_tells_what_changes_and_resumes_at_a_version() -> None:
    with running(paths()) as address:
        with feed(address, "/api/changes") as events:
            assert next(events)["event"] == "hello"
            post(address, "/api/update", {"insert": {"edge": [["c", "d"]]}})
            event = next(events)
            assert (event["event"], event["id"]) == ("change", "1")
            added = json.loads(event["data"])["added"]
            assert added["edge"] == [["c", "d"]]
            assert len(added["reach"]) == 3
        # Nobody listens while this happens.
        post(address, "/api/update", {"delete": {"edge": [["a", "b"]]}})
        post(address, "/api/update", {"insert": {"person": [["e"]]}})
        with feed(address, "/api/changes?since=1") as events:
            assert next(events)["id"] == "1"
            assert json.loads(next(events)["data"])["removed"]["edge"] == [["a", "b"]]
            assert json.loads(next(events)["data"])["added"]["person"] == [["e"]]
        last = {"Last-Event-ID": "2"}
        with feed(address, "/api/changes?predicate=edge", **last) as events:
            assert next(events)["id"] == "2"
            # It moves the version on, and says nothing of other predicates.
            event = next(events)
            assert (event["event"], event["id"], event["data"]) == ("other", "3", "{}")


def test_a_feed_follows_a_knowledge_base_for_a_while() -> None:
    with running(paths()) as address:
        known: set[tuple[str, ...]] = set()
        with feed(address, "/api/changes?since=0") as events:
            next(events)
            for number in range(20):
                rows = [["n", str(number)], ["n", str(number + 1)]]
                kind = "replace" if number % 3 else "insert"
                post(address, "/api/update", {kind: {"edge": rows}})
                data = json.loads(next(events)["data"])
                known -= set(map(tuple, data["removed"].get("reach", [])))
                known |= set(map(tuple, data["added"].get("reach", [])))
        body = {"query": "reach(?x, ?y)"}
        found = set(map(tuple, post(address, "/api/query", body)["rows"]))
        assert known == found - {("a", "b"), ("b", "c"), ("a", "c")}
        assert len(known) >= 2


def test_a_query_ends_when_its_client_goes_away() -> None:
    kb = KnowledgeBase(engine="embedded")
    kb.insert("n", [(number,) for number in range(2000)])
    with running(kb) as address:
        line = http.client.HTTPConnection(address.removeprefix("http://"))
        text = "n(?a), n(?b), n(?c), n(?d), ?a + ?b + ?c + ?d < 0"
        body = json.dumps({"query": text})
        line.request("POST", "/api/query", body, {"Content-Type": "application/json"})
        time.sleep(0.3)
        line.close()
        start = time.monotonic()
        assert post(address, "/api/query", {"query": "n(7)"})["count"] == 1
        assert time.monotonic() - start < 20  # of the 30 that the query had


def test_the_command_serves_and_ends_with_a_signal(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dl"
    rules.write_text(RULES)
    (tmp_path / "edge.csv").write_text("from,to\na,b\n")
    command = [sys.executable, "-m", "evermat", "serve", str(rules), "--port", "0"]
    command += ["--facts", str(tmp_path / "edge.csv"), "--engine", "reference"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = next(each for each in process.stdout if "serving" in each)
        address = next(word for word in line.split() if word.startswith("http"))
        body = {"query": "reach('a', ?x)"}
        assert post(address.rstrip("/"), "/api/query", body)["rows"] == [["b"]]
        process.terminate()
        process.wait(30)


def test_a_port_in_use_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.dl"
    rules.write_text(RULES)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", str(rules), "--port", str(port)]) == 1
    assert f"port {port} of `127.0.0.1` is in use" in capsys.readouterr().err
    assert run(["serve", str(rules), "--host", "0.0.0.0"]) == 1  # noqa: S104  refused
    assert "needs tokens" in capsys.readouterr().err
