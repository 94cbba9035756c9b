"""What the server answers to well-formed requests, and to others."""

from __future__ import annotations

import io
import json
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from evermat import IRI, KnowledgeBase, LangString, TypedLiteral
from evermat.server.access import Access, Role, access_for, digest_of
from evermat.server.errors import ServerSetupError
from evermat.server.formats import ARROW
from evermat.server.limits import Limits
from served import client_of, paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from httpx2 import Response
    from starlette.testclient import TestClient

EDGES = {"edge": [["c", "d"]]}


@pytest.fixture
def client() -> Iterator[TestClient]:
    with client_of(paths()) as client:
        yield client


def rows(answer: Response) -> set[tuple[object, ...]]:
    assert answer.status_code == 200, answer.text
    return set(map(tuple, answer.json()["rows"]))


def code(answer: Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert "Traceback" not in answer.text
    return str(answer.json()["error"]["code"])


def ask(client: TestClient, text: str, **params: str | int) -> Response:
    return client.get("/api/query", params={"query": text, **params})


# ------------------------------------------------------------------------ reading


def test_queries_are_answered(client: TestClient) -> None:
    assert rows(ask(client, "reach(?x, 'c')")) == {("a",), ("b",)}
    assert ask(client, "reach('a', 'c')").json()["count"] == 1
    assert ask(client, "reach('c', 'a')").json()["count"] == 0
    body = {"query": "reach(?x, $to)", "parameters": {"to": "c"}}
    assert rows(client.post("/api/query", json=body)) == {("a",), ("b",)}


def test_pages_come_in_order(client: TestClient) -> None:
    everything = ask(client, "reach(?x, ?y)", order="-y").json()
    assert everything["rows"] == [["b", "c"], ["a", "c"], ["a", "b"]] or everything[
        "rows"
    ] == [["a", "c"], ["b", "c"], ["a", "b"]]
    page = ask(client, "reach(?x, ?y)", order="x", limit=1, offset=2).json()
    assert page["rows"] == [["b", "c"]]
    assert page["count"] == 3


def test_answers_come_as_arrow_and_csv(client: TestClient) -> None:
    params = {"predicate": "edge"}
    answer = client.get("/api/facts", params=params, headers={"Accept": ARROW})
    table = pa.ipc.open_stream(answer.content).read_all()
    assert set(zip(*table.to_pydict().values(), strict=True)) == {
        ("a", "b"),
        ("b", "c"),
    }
    answer = client.get("/api/facts", params=params, headers={"Accept": "text/csv"})
    table = pyarrow.csv.read_csv(io.BytesIO(answer.content))
    assert table.column_names == ["from", "to"]
    assert answer.headers["evermat-count"] == "2"
    refused = client.get("/api/facts", params=params, headers={"Accept": "image/png"})
    assert code(refused, 406) == "EM957"


def test_terms_of_rdf_are_told_apart() -> None:
    values = [
        IRI("http://e/a"), "text", 7, 1.5, True, LangString("chat", "fr"),
        TypedLiteral("P1D", "http://www.w3.org/2001/XMLSchema#duration"),
    ]  # fmt: skip
    kb = KnowledgeBase(engine="reference")
    kb.insert("v", [(each,) for each in values])
    with client_of(kb) as client:
        found = client.get("/api/facts", params={"predicate": "v"}).json()["rows"]
        emptied = client.put("/api/facts?predicate=v", json={"rows": []})
        assert emptied.json()["sizes"] == {"v": {"added": 0, "removed": 7}}
        client.post("/api/facts?predicate=v", json={"rows": found})
        again = client.get("/api/facts", params={"predicate": "v"}).json()["rows"]
    assert {"iri": "http://e/a"} in [row[0] for row in found]
    assert sorted(map(json.dumps, again)) == sorted(map(json.dumps, found))


def test_facts_are_explained_and_why_not(client: TestClient) -> None:
    params = {"fact": "reach('a', 'c')"}
    answer = client.get("/api/explain", params=params).json()
    assert answer["holds"]
    assert len(answer["steps"][0]["premises"]) == 2
    for accept, start in (
        ("text/plain", 'reach("a", "c")'),
        ("image/svg+xml", "<svg"),
        ("text/vnd.graphviz", "digraph"),
    ):
        shown = client.get("/api/explain", params=params, headers={"Accept": accept})
        assert shown.text.startswith(start)
    answer = client.get("/api/explain", params={"fact": "reach('c', 'a')"}).json()
    assert not answer["holds"]
    assert {each["failed"] for each in answer["failures"]} == {
        'there is no edge("c", "a")', 'there is no reach("c", ?y)',
    } or len(answer["failures"]) == 2  # fmt: skip


def test_rules_and_their_graph_are_shown(client: TestClient) -> None:
    graph = client.get("/api/graph").json()
    levels = {each["name"]: each["level"] for each in graph["nodes"]}
    assert levels == {"edge": 0, "person": 0, "reach": 1, "lonely": 2}
    assert {"from": "reach", "to": "lonely", "is_negated": True} in graph["edges"]
    recursive = [each["name"] for each in graph["nodes"] if each["is_recursive"]]
    assert recursive == ["reach"]
    shown = client.get("/api/rules").json()["rules"]
    assert len(shown) == 3
    measured = client.get("/api/rules?profile=true").json()["rules"]
    costs = [each["profile"] for each in measured if each["head"] == "lonely"]
    assert [(each["instances"], each["facts"]) for each in costs] == [(1, 1)]
    assert len(client.get("/api/predicates").json()["predicates"]) == 4
    assert client.get("/api").json()["facts"] == 8


# ----------------------------------------------------------------------- changing


def test_an_update_changes_and_a_dry_run_does_not(client: TestClient) -> None:
    body = {"insert": EDGES, "title": "one more"}
    planned = client.post("/api/update?dry_run=true", json=body).json()
    assert planned["applied"] is False
    assert planned["sizes"]["reach"] == {"added": 3, "removed": 0}
    assert client.get("/health").json()["version"] == 0
    made = client.post("/api/update", json=body).json()
    assert made["sizes"] == planned["sizes"]
    assert made["version"] == 1
    assert rows(ask(client, "reach(?x, 'd')")) == {("a",), ("b",), ("c",)}


def test_rules_come_and_go_with_their_prefixes(client: TestClient) -> None:
    text = "[?x, :next, ?y] :- edge(?x, ?y) ."
    made = client.post("/api/update", json={"add_rules": text})
    assert made.json()["sizes"]["triple"]["added"] == 2
    assert ask(client, "[?x, :next, ?y]").json()["count"] == 2
    # Twice, since readers use two copies in turn.
    client.post("/api/update", json={"insert": EDGES})
    assert ask(client, "[?x, :next, ?y]").json()["count"] == 3
    client.post("/api/update", json={"remove_rules": text})
    assert ask(client, "[?x, :next, ?y]").json()["count"] == 0
    assert len(client.get("/api/rules").json()["rules"]) == 3


def test_an_update_for_another_version_is_refused(client: TestClient) -> None:
    client.post("/api/update", json={"insert": EDGES, "version": 0})
    late = client.post("/api/update", json={"delete": EDGES, "version": 0})
    assert code(late, 409) == "EM959"
    assert client.get("/health").json()["version"] == 1


def test_an_update_that_changes_nothing_makes_no_version(client: TestClient) -> None:
    made = client.post("/api/update", json={"insert": {"edge": [["a", "b"]]}})
    assert made.json()["version"] == 0
    assert len(client.get("/api/versions").json()["versions"]) == 1


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet", "records"])
def test_facts_come_as_files(client: TestClient, kind: str) -> None:
    table = pa.table({"to": ["d"], "from": ["c"]})
    sink = io.BytesIO()
    if kind == "records":
        body = {"rows": [{"to": "d", "from": "c"}]}
        made = client.post("/api/facts?predicate=edge", json=body)
    else:
        if kind == "csv":
            pyarrow.csv.write_csv(table, sink)
        elif kind == "parquet":
            pq.write_table(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        types = {"csv": "text/csv", "arrow": ARROW}
        media_type = types.get(kind, "application/vnd.apache.parquet")
        made = client.post(
            "/api/facts?predicate=edge",
            content=sink.getvalue(),
            headers={"Content-Type": media_type},
        )
    assert made.json()["sizes"]["edge"] == {"added": 1, "removed": 0}
    assert ("c", "d") in rows(client.get("/api/facts?predicate=edge"))


def test_triples_come_as_turtle_and_blank_nodes_stay_the_same() -> None:
    with client_of(KnowledgeBase("p(?x) :- [?x, <http://e/p>, _] .")) as client:
        made = client.post(
            "/api/facts?predicate=triple",
            content="_:x <http://e/p> 1 .",
            headers={"Content-Type": "text/turtle"},
        )
        assert made.json()["sizes"]["p"] == {"added": 1, "removed": 0}
        (first,) = client.get("/api/facts?predicate=p").json()["rows"]
        # From now on readers see the other copy.
        client.post("/api/update", json={"insert": {"q": [[1]]}})
        (second,) = client.get("/api/facts?predicate=p").json()["rows"]
        client.post("/api/update?dry_run=true", json={"insert": {"q": [[2]]}})
        (third,) = client.get("/api/facts?predicate=p").json()["rows"]
    assert first == second == third


def test_a_dump_replaces_a_table(client: TestClient) -> None:
    made = client.put(
        "/api/facts?predicate=edge",
        content="from,to\na,b\nb,d\n",
        headers={"Content-Type": "text/csv"},
    ).json()
    assert made["sizes"]["edge"] == {"added": 1, "removed": 1}
    gone = client.request(
        "DELETE", "/api/facts?predicate=edge", json={"rows": [["b", "d"]]}
    ).json()
    assert gone["sizes"]["edge"] == {"added": 0, "removed": 1}
    assert rows(client.get("/api/facts?predicate=edge")) == {("a", "b")}


# ----------------------------------------------------------------------- versions


def test_versions_are_listed_compared_and_restored(client: TestClient) -> None:
    client.post("/api/update", json={"insert": EDGES, "title": "first"})
    client.post(
        "/api/update",
        json={
            "delete": {"edge": [["a", "b"]]},
            "add_rules": "back(?y, ?x) :- edge(?x, ?y) .",
        },
    )
    client.post("/api/update", json={"delete": EDGES, "insert": {"edge": [["a", "b"]]}})
    before = client.get("/api/versions").json()["versions"]
    assert [each["number"] for each in before] == [3, 2, 1, 0]
    assert before[2]["title"] == "first"
    second = client.get("/api/versions/2").json()
    assert second["removed"]["edge"] == [["a", "b"]]
    assert second["added_rules"] == ["back(?y, ?x) :- edge(?x, ?y) ."]
    planned = client.post("/api/versions/1/restore?dry_run=true").json()
    made = client.post("/api/versions/1/restore").json()
    assert planned["sizes"] == made["sizes"]
    assert rows(client.get("/api/facts?predicate=edge")) == {
        ("a", "b"), ("b", "c"), ("c", "d"),
    }  # fmt: skip
    assert len(client.get("/api/rules").json()["rules"]) == 3
    assert client.get("/api/versions").json()["versions"][0]["restored"] == 1
    undone = client.post("/api/undo").json()
    assert undone["version"] == 5
    assert len(client.get("/api/rules").json()["rules"]) == 4
    assert code(client.get("/api/versions/9"), 404) == "EM954"


def test_versions_of_a_state_are_known_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "kept")
    with client_of(paths(state=place)) as client:
        client.post("/api/update", json={"insert": EDGES})
        last = client.get("/health").json()["version"]
    with client_of(KnowledgeBase.open(place, engine="reference")) as client:
        assert client.get("/health").json()["version"] == last
        found = client.get("/api/versions").json()["versions"]
        assert [each["number"] for each in found] == list(range(last, 0, -1))
        difference = client.get(f"/api/versions/{last}").json()
        assert difference["added"]["edge"] == [["c", "d"]]
        made = client.post(f"/api/versions/{last - 1}/restore").json()
        assert made["sizes"]["edge"] == {"added": 0, "removed": 1}
        assert made["version"] == last + 1
    assert ("c", "d") not in KnowledgeBase.open(place)["edge"]


# -------------------------------------------------------------------------- limits


def test_a_query_that_would_run_for_ever_is_stopped() -> None:
    kb = KnowledgeBase(engine="embedded")
    kb.insert("n", [(number,) for number in range(2000)])
    with client_of(kb, limits=Limits(seconds=1)) as client:
        start = time.monotonic()
        answer = ask(client, "n(?a), n(?b), n(?c), n(?d), ?a + ?b + ?c + ?d < 0")
        assert code(answer, 422) == "EM602"
        assert time.monotonic() - start < 30
        assert ask(client, "n(7)").json()["count"] == 1


def test_many_matches_are_too_many() -> None:
    kb = KnowledgeBase(engine="embedded")
    kb.insert("n", [(number,) for number in range(500)])
    with client_of(kb, limits=Limits(instances=100_000)) as client:
        assert code(ask(client, "n(?a), n(?b)"), 422) == "EM602"


def test_rows_and_bodies_have_limits() -> None:
    with client_of(paths(), limits=Limits(rows=2, body_bytes=100)) as client:
        assert code(ask(client, "reach(?x, ?y)", limit=3), 400) == "EM951"
        assert len(rows(ask(client, "reach(?x, ?y)", limit=2))) == 2
        long = {"add_rules": "p(?x) :- q(?x) . " * 10}
        assert code(client.post("/api/update", json=long), 413) == "EM955"

        def pieces() -> Iterator[bytes]:
            for _ in range(10):
                yield b" " * 20

        headers = {"Content-Type": "application/json"}
        answer = client.post("/api/update", content=pieces(), headers=headers)
        assert code(answer, 413) == "EM955"


def test_no_file_is_read_for_a_request(client: TestClient, tmp_path: Path) -> None:
    secret = tmp_path / "secret.dl"
    secret.write_text("p(1) .")
    for text in (
        f'@include "{secret}" .',
        '@include "rules.dl" .',
        f'@import p(c1: string) from "{tmp_path}/x.csv" .',
    ):
        answer = client.post("/api/update", json={"add_rules": text})
        assert answer.status_code == 422, text
        assert str(tmp_path) not in answer.json()["error"]["message"]
    answer = client.post("/api/update", json={"add_rules": str(secret)})
    assert answer.status_code == 422
    assert "p" not in [
        each["name"] for each in client.get("/api/predicates").json()["predicates"]
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "expected"),
    [
        ("GET", "/api/query?query=reach(", None, 422, "EM101"),
        ("GET", "/api/query?query=rech(?x,%20?y)", None, 404, "EM251"),
        ("GET", "/api/query?query=edge(?x,?y)&limit=x", None, 400, "EM951"),
        ("GET", "/api/query", None, 400, "EM951"),
        ("GET", "/api/facts?predicate=edge&nonsense=1", None, 400, "EM951"),
        ("GET", "/api/facts?predicate=edge&order=nonsense", None, 422, "EM565"),
        ("GET", "/nonsense", None, 404, "EM954"),
        ("PUT", "/api/update", None, 405, "EM954"),
        ("POST", "/api/update", {"insert": {"edge": [["a"]]}}, 422, "EM250"),
        ("POST", "/api/update", {"insert": {"edge": [[None, "a"]]}}, 400, "EM951"),
        ("POST", "/api/update", {"insert": {"edge": "file.csv"}}, 400, "EM951"),
        ("POST", "/api/update", {"nonsense": 1}, 400, "EM951"),
        ("POST", "/api/update", {"add_rules": "p(?x) :- q(?y) ."}, 422, "EM201"),
        ("POST", "/api/update", {"algorithm": "x"}, 422, "EM511"),
        ("POST", "/api/undo", None, 404, "EM954"),
        ("POST", "/api/versions/7/restore", None, 404, "EM954"),
        ("GET", "/api/explain?fact=edge(?x,?y)", None, 422, "EM252"),
        ("GET", "/sparql", None, 400, "EM951"),
        ("GET", "/api/changes?since=9", None, 404, "EM954"),
        ("GET", "/api/changes?predicate=rech", None, 404, "EM251"),
    ],
)
def test_bad_requests_get_a_code_and_change_nothing(
    client: TestClient,
    method: str,
    path: str,
    body: object,
    status: int,
    expected: str,
) -> None:
    answer = client.request(method, path, json=body)
    assert code(answer, status) == expected
    assert client.get("/api").json()["facts"] == 8


def test_bodies_of_other_types_are_refused(client: TestClient) -> None:
    answer = client.post(
        "/api/facts?predicate=edge", content="x", headers={"Content-Type": "image/png"}
    )
    assert code(answer, 415) == "EM956"
    answer = client.post(
        "/api/facts?predicate=edge",
        content="a,b\nc\n",
        headers={"Content-Type": "text/csv"},
    )
    assert code(answer, 422) == "EM962"
    assert "body.csv:2" in answer.text
    assert "evermat-body" not in answer.text


def test_errors_nobody_foresaw_are_logged_and_not_shown(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        message = "a secret of the server"
        raise RuntimeError(message)

    monkeypatch.setattr(KnowledgeBase, "facts", fails)
    answer = client.get("/api/facts?predicate=edge")
    assert answer.status_code == 500
    assert "secret" not in answer.text


# ------------------------------------------------------------------------- access


ROLES = Access(
    {
        digest_of(f"token-of-{name}"): (name, role)
        for name, role in zip(("read", "write", "admin"), list(Role)[1:], strict=True)
    }
)


@pytest.mark.parametrize(
    ("token", "reads", "writes", "restores"),
    [
        (None, 401, 401, 401),
        ("token-of-nobody", 401, 401, 401),
        ("token-of-read", 200, 403, 403),
        ("token-of-write", 200, 200, 403),
        ("token-of-admin", 200, 200, 200),
    ],
)
def test_tokens_have_roles(
    token: str | None, reads: int, writes: int, restores: int
) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with client_of(paths(), access=ROLES) as client:
        assert client.get("/health").status_code == 200
        assert ask(client, "edge(?x, ?y)").status_code == 401
        client.headers.update(headers)
        assert ask(client, "edge(?x, ?y)").status_code == reads
        made = client.post("/api/update", json={"insert": EDGES})
        assert made.status_code == writes
        sparql = client.post(
            "/sparql",
            content="INSERT DATA { <http://e/a> <http://e/b> 1 }",
            headers={"Content-Type": "application/sparql-update"},
        )
        assert sparql.status_code == writes
        back = client.post("/api/versions/0/restore")
        assert back.status_code == restores


def test_pages_of_other_sites_are_refused(client: TestClient) -> None:
    evil = {"Origin": "http://evil.example"}
    assert code(client.get("/api", headers=evil), 403) == "EM953"
    assert code(client.get("/api", headers={"Host": "evil.example"}), 403) == "EM953"
    own = {"Origin": "http://localhost"}
    assert client.get("/api", headers=own).status_code == 200


def test_a_server_that_others_reach_needs_tokens(tmp_path: Path) -> None:
    with pytest.raises(ServerSetupError, match="could change everything"):
        access_for("0.0.0.0", frozenset(), None)  # noqa: S104  what is refused
    file = tmp_path / "tokens.toml"
    file.write_text('[[tokens]]\nname = "a"\nrole = "read"\ntoken = "0123456789abcdef"')
    access = access_for("0.0.0.0", frozenset(), file)  # noqa: S104  with tokens
    assert access.role_of("Bearer 0123456789abcdef") == 1
    file.write_text('[[tokens]]\nname = "a"\nrole = "boss"\ntoken = "0123456789abcdef"')
    with pytest.raises(ServerSetupError, match="does not hold tokens") as refused:
        access_for("0.0.0.0", frozenset(), file)  # noqa: S104  with tokens
    assert "0123456789abcdef" not in str(refused.value)


# ------------------------------------------------------------------------- figures


def test_figures_are_there_for_prometheus(client: TestClient) -> None:
    ask(client, "edge(?x, ?y)")
    client.post("/api/update", json={"insert": EDGES})
    text = client.get("/metrics").text
    line = 'evermat_requests_total{method="GET",path="/api/query",status="200"} 1.0'
    assert line in text
    assert 'evermat_facts{predicate="reach"} 6.0' in text
    assert "evermat_version 1.0" in text
    assert 'evermat_changed_facts_total{sign="+"} 4.0' in text


def test_many_ask_at_once(client: TestClient) -> None:
    failed: list[str] = []

    def work() -> None:
        for _ in range(5):
            answer = ask(client, "reach(?x, ?y)")
            if answer.status_code != 200:
                failed.append(answer.text)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for number in range(5):
        client.post("/api/update", json={"insert": {"edge": [["z", str(number)]]}})
    for each in threads:
        each.join()
    assert not failed
