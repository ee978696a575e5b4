"""Deaths go to servers of profiles: the messages, read with the published protobufs, and what a server may answer."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import http.server
import json
import random
import socket
import subprocess
import threading
import uuid

import protobuf
import pytest
import schemas
from conftest import written
from fleet_rows import MIB, frame, line, native_frame, row, write_rows

SINCE = ("--since", "5w", "--until", "2026-12-01")


class Server:
    """Takes what is posted. `answers` are given one by one, then 200: (status, content type, body),
    "lost" (the request is taken, without an answer) or "refused" (nothing is read)."""

    def __init__(self):
        self.answers, self.taken, self.retry_after = [], [], None
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                server.handle(self)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def handle(self, request):
        answer = self.answers.pop(0) if self.answers else (200, "", b"")
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.taken.append((request.path, dict(request.headers.items()), body))
        if answer == "lost":
            request.close_connection = True
            return request.connection.shutdown(socket.SHUT_RDWR)
        status, content, text = answer
        request.send_response(status)
        request.send_header("Content-Length", str(len(text)))
        request.send_header("Content-Type", content)
        if status == 302:
            request.send_header("Location", f"{self.url}/login")
        if self.retry_after:
            request.send_header("Retry-After", self.retry_after)
        request.end_headers()
        return request.wfile.write(text)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch):
    from oomrec.fleet import _push

    monkeypatch.setattr(_push, "FIRST_DELAY_S", 0.001)
    made = Server()
    yield made
    made.close()


@pytest.fixture
def three(tmp_path):
    """Three deaths, and what is not sent: a life, a warning, and a death without a holder."""
    directory = tmp_path / "fleet"
    others = [row(7, kind="life"), row(8, kind="warning"), row(9, holders=[])]
    write_rows(directory, [*map(row, (1, 2, 3)), *others])
    return directory


@pytest.fixture
def push(fleet):
    """push(words…) is (exit code, result, stderr)."""

    def run(*words):
        code, output, errors = fleet("push", *words, *SINCE, "--json")
        result = json.loads(output) if output else None
        if result:
            schemas.check("fleet_push", result)
        return code, result, errors

    return run


def with_all_frames(**changed):
    """A death whose holders have each kind of frame."""
    unnamed = {**native_frame(random.Random(1)), "function": None}
    bare = {**unnamed, "module": None, "build_id": None, "offset": None}
    holders = [
        {
            "space": "heap",
            "device": None,
            "bytes": 3 * MIB,
            "resident_bytes": 2 * MIB,
            "count": 7,
            "estimated": True,
            "sig": None,
            "frames": [unnamed, frame("lädt", "a.py", 12), frame("lädt", "a.py", 13), bare],
        },
        {
            "space": "cuda",
            "device": "0",
            "bytes": 5,
            "resident_bytes": None,
            "count": None,
            "estimated": False,
            "sig": None,
            "frames": [],
        },
    ]
    return row(5, holders=holders, **changed)


def stacks_of(pprof: bytes) -> dict[tuple, tuple]:
    """By stack, innermost first: its values and labels. Every index must be in its table."""
    profile = protobuf.message(gzip.decompress(pprof))
    text = [each.decode() for each in profile[6]]
    assert text[0] == "" and len(set(text)) == len(text)

    def table(number):
        found = [protobuf.message(each) for each in profile.get(number, [])]
        assert [each[1][0] for each in found] == list(range(1, len(found) + 1))
        return found

    mappings, locations, functions = table(3), table(4), table(5)
    types = [protobuf.message(each) for each in profile[1]]
    assert [(text[t[1][0]], text[t[2][0]]) for t in types] == [
        ("inuse_space", "bytes"),
        ("inuse_objects", "count"),
    ]
    assert text[profile[14][0]] == "inuse_space" and profile[12] == [1]

    def name(number):
        location = locations[number - 1]
        made = protobuf.message(location[4][0])
        function = functions[made[1][0] - 1]
        mapping = mappings[location[2][0] - 1] if 2 in location else {}
        return (
            text[function[2][0]],
            text[function[4][0]] if 4 in function else "",
            made.get(2, [0])[0],
            text[mapping[5][0]] if mapping else "",
        )

    found = {}
    for each in profile[2]:
        sample = protobuf.message(each)
        stack = tuple(name(n) for n in protobuf.packed(sample[1][0]))
        labels = [protobuf.message(label) for label in sample.get(3, [])]
        named = {text[label[1][0]]: text[label[2][0]] for label in labels}
        found[stack] = (protobuf.packed(sample[2][0]), named)
    return found


def expected_stacks(death):
    def name(each):
        if each["module"] and not each["function"]:
            return (f"{each['module']}+{each['offset']:#x}", "", 0, each["module"])
        return (
            each["function"] or "?",
            each["file"] or "",
            each["line"] or 0,
            each["module"] or "",
        )

    return {
        tuple(map(name, holder["frames"])): (
            [holder["bytes"], holder["count"] or 0],
            {key: holder[key] for key in ("space", "device") if holder[key]},
        )
        for holder in death["holders"]
    }


def test_pyroscope_gets_pprof_with_labels_and_an_id(server, push, tmp_path):
    death = with_all_frames(pod="pod-1", labels={"team": "x"})
    write_rows(tmp_path, [death])
    code, result, _ = push(tmp_path, "--pyroscope", server.url)
    assert code == 0 and result["pushed"] == 1

    [(path, headers, body)] = server.taken
    assert path == "/push.v1.PusherService/Push" and headers["Content-Type"] == "application/json"
    [series] = json.loads(body)["series"]
    labels = {pair["name"]: pair["value"] for pair in series["labels"]}
    assert (
        labels.items()
        >= {
            "__name__": "memory",
            "__delta__": "false",
            "service_name": death["service"],
            "pod": "pod-1",
            "signature": death["signature"],
        }.items()
    )
    assert all(labels.values())
    [sample] = series["samples"]
    assert uuid.UUID(sample["ID"])
    pprof = base64.b64decode(sample["rawProfile"])
    assert stacks_of(pprof) == expected_stacks(death)
    when = protobuf.message(gzip.decompress(pprof))[9][0]
    moment = dt.datetime.fromisoformat(death["time"].replace("Z", "+00:00"))
    assert when == round(moment.timestamp() * 1000) * 1_000_000


def test_parca_gets_the_same_profile(server, push, three):
    assert push(three, "--pyroscope", server.url)[0] == 0
    assert push(three, "--parca", server.url)[0] == 0
    theirs, ours = server.taken[:3], server.taken[3:]
    assert {path for path, _, _ in ours} == {"/api/profiles/writeraw"}
    for (_, _, one), (_, _, other) in zip(theirs, ours):
        [series], [same] = (json.loads(body)["series"] for body in (one, other))
        assert same["samples"][0] == {"rawProfile": series["samples"][0]["rawProfile"]}
        names = [pair for pair in series["labels"] if pair["name"] != "__delta__"]
        assert same["labels"]["labels"] == names


@pytest.mark.needs_program("go")
def test_pprof_reads_the_profile(server, push, tmp_path):
    write_rows(tmp_path, [with_all_frames()])
    assert push(tmp_path, "--parca", server.url)[0] == 0
    [series] = json.loads(server.taken[0][2])["series"]
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(base64.b64decode(series["samples"][0]["rawProfile"]))
    top = subprocess.run(
        ["go", "tool", "pprof", "-top", "-unit=B", path], capture_output=True, text=True
    )
    assert top.returncode == 0, top.stderr
    assert f"{3 * MIB + 5}B total" in top.stdout and "lädt" in top.stdout


def otlp_requests(server):
    pytest.importorskip("opentelemetry.proto", reason="opentelemetry-proto is not installed")
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

    for path, headers, body in server.taken:
        assert path == "/v1development/profiles"
        assert headers["Content-Type"] == "application/x-protobuf"
        request = profiles_service_pb2.ExportProfilesServiceRequest()
        plain = gzip.decompress(body)
        request.ParseFromString(plain)
        request.DiscardUnknownFields()
        assert len(request.SerializeToString()) == len(plain)  # it has no field that is unknown
        yield request


def attributes_of(pairs):
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in pairs if pair.key}


def test_otlp_is_a_message_of_the_published_protobufs(server, push, tmp_path):
    hostile = {"1 bad-key": "x", "team": "ä" * 5000, "service.name": "not this one"}
    death = with_all_frames(namespace="shop", labels=hostile)
    write_rows(tmp_path, [death])
    assert push(tmp_path, "--otlp", server.url)[0] == 0

    [request] = otlp_requests(server)
    [resource] = request.resource_profiles
    named = attributes_of(resource.resource.attributes)
    assert named["service.name"] == death["service"] and named["service.version"] == "v1.1"
    assert named["k8s.namespace.name"] == "shop" and named["_1_bad_key"] == "x"
    assert len(named["team"]) == 1000
    [scope] = resource.scope_profiles
    assert (scope.scope.name, scope.scope.version) == ("oomrec", "0.1.0")
    tables = request.dictionary
    text = tables.string_table
    for table in (text, tables.mapping_table, tables.location_table, tables.function_table):
        null = type(table[0])()
        assert table[0] == null and null not in list(table)[1:]  # 0 means nothing
    assert len(tables.link_table) == 1 and not tables.stack_table[0].location_indices
    assert tables.attribute_table[0].key_strindex == 0
    expected = expected_stacks(death)

    def attributes(indices):
        found = [tables.attribute_table[n] for n in indices]
        return {
            text[each.key_strindex]: each.value.string_value or each.value.int_value
            for each in found
        }

    def stack(number):
        for n in tables.stack_table[number].location_indices:
            location = tables.location_table[n]
            mapping = tables.mapping_table[location.mapping_index]
            [made] = location.lines
            function = tables.function_table[made.function_index]
            assert function.system_name_strindex == function.name_strindex
            if mapping.filename_strindex:
                build_id = attributes(mapping.attribute_indices)["process.executable.build_id.gnu"]
                assert len(build_id) == 40 and location.address
            yield (
                text[function.name_strindex],
                text[function.filename_strindex],
                made.line,
                text[mapping.filename_strindex],
            )

    kinds = []
    for n, profile in enumerate(scope.profiles):
        kinds.append(
            (text[profile.sample_type.type_strindex], text[profile.sample_type.unit_strindex])
        )
        period = profile.period_type
        assert (text[period.type_strindex], text[period.unit_strindex]) == ("space", "bytes")
        assert profile.period == 1 and len(profile.profile_id) == 16
        assert profile.time_unix_nano % 1_000_000 == 0
        facts = attributes(profile.attribute_indices)
        assert facts["oomrec.death_id"] == death["death_id"]
        assert facts["oomrec.limit_bytes"] == death["limit_bytes"]
        found = {
            tuple(stack(sample.stack_index)): (
                list(sample.values),
                {k[len("oomrec.") :]: v for k, v in attributes(sample.attribute_indices).items()},
            )
            for sample in profile.samples
        }
        assert found == {names: ([of[n]], labels) for names, (of, labels) in expected.items()}
    assert kinds == [("inuse_space", "bytes"), ("inuse_objects", "count")]


def test_ids_are_the_same_in_each_run_and_of_each_revision(server, push, tmp_path):
    for revision in (0, 1):
        write_rows(tmp_path, [row(1, revision=revision), row(2)])
        assert push(tmp_path, "--otlp", server.url)[0] == 0
    ids = [
        profile.profile_id
        for request in otlp_requests(server)
        for resource in request.resource_profiles
        for profile in resource.scope_profiles[0].profiles
    ]
    assert len(ids) == 8 and len(set(ids)) == 4 and ids[:4] == ids[4:]


def test_what_is_no_death_or_has_no_holder_is_not_sent(server, push, three):
    code, result, _ = push(three, "--otlp", server.url)
    assert code == 0 and len(server.taken) == 3
    del result["schema_version"]
    assert result == {
        "deaths": 4,
        "pushed": 3,
        "sent_before": 0,
        "without_holders": 1,
        "refused": {},
    }


def test_what_was_sent_is_remembered(server, push, three, tmp_path):
    sent = tmp_path / "sent"
    server.answers = [(200, "", b""), (400, "", b"no")]
    code, result, _ = push(three, "--pyroscope", server.url, "--sent", sent)
    assert code == 1 and result["pushed"] == 2 and len(result["refused"]) == 1
    code, result, _ = push(three, "--pyroscope", server.url, "--sent", sent)
    assert (code, result["pushed"], result["sent_before"]) == (0, 1, 2)
    ids = [json.loads(body)["series"][0]["samples"][0]["ID"] for _, _, body in server.taken]
    assert len(ids) == 4 and ids[3] == ids[1] and len(set(ids)) == 3


def test_two_pushes_do_not_share_a_file_of_sent_deaths(server, push, three, tmp_path):
    from oomrec.fleet._push import remembered

    with remembered(str(tmp_path / "sent")):
        code, _, errors = push(three, "--otlp", server.url, "--sent", tmp_path / "sent")
    assert code == 1 and "in use by another process" in errors and not server.taken


STATUS = b"\x08\x03\x12\x0fnot this one \xe2\x98\xa0"  # of google.rpc: code, message


@pytest.mark.parametrize(
    "kind, answer, text",
    [
        ("otlp", (400, "text/plain", b"out of\n the window"), "out of the window"),
        ("otlp", (400, "application/x-protobuf", STATUS), "not this one"),
        ("otlp", (200, "application/x-protobuf", b"\x0a\x08\x08\x01\x12\x04full"), "full"),
        ("pyroscope", (400, "application/json", b'{"code": "x", "message": "old"}'), "old"),
        ("parca", (500, "text/plain", b""), "Internal Server Error"),
        ("parca", (413, "text/html", b"<b>\x1b[31m" * 1000), "413 <b>?[31m"),
    ],
)
def test_a_refusal_is_reported_with_the_servers_text(server, push, three, kind, answer, text):
    server.answers = [answer]
    code, result, errors = push(three, f"--{kind}", server.url)
    assert code == 1 and result["pushed"] == 2 and len(server.taken) == 3
    assert text in errors and "1 death refused" in errors and "\x1b" not in errors
    assert len(errors) < 600


@pytest.mark.parametrize("status", [401, 403, 404, 405, 302])
def test_a_wrong_url_or_key_ends_the_command(server, push, three, status):
    server.answers = [(status, "text/plain", b"who are you?")]
    code, _, errors = push(three, "--otlp", server.url)
    assert code == 2 and len(server.taken) == 1
    assert f"answers {status} who are you?" in errors


def test_a_busy_server_is_asked_again(server, push, three):
    server.answers = [(503, "", b""), (429, "", b""), "lost", (502, "", b"")]
    code, result, errors = push(three, "--pyroscope", server.url)
    assert code == 0, errors
    bodies = [body for _, _, body in server.taken]
    assert result["pushed"] == 3 and len(bodies) == 7 and len(set(bodies[:5])) == 1


def test_a_server_that_stays_busy_is_given_up(server, push, three):
    server.answers, server.retry_after = [(503, "", b"later")] * 50, "0"
    code, _, errors = push(three, "--otlp", server.url)
    assert code == 2 and len(server.taken) == 5 and "5 times tried" in errors and "later" in errors


@pytest.mark.parametrize("answer", ["lost", (504, "", b"")])
def test_parca_gets_nothing_twice_that_may_have_arrived(server, push, three, answer):
    server.answers = [(503, "", b""), answer]
    code, _, errors = push(three, "--parca", server.url)
    assert code == 2 and len(server.taken) == 2
    assert "may have arrived" in errors


def test_a_server_that_is_not_there(push, three, monkeypatch):
    from oomrec.fleet import _push

    monkeypatch.setattr(_push, "FIRST_DELAY_S", 0.001)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        for kind in ("otlp", "parca"):
            code, _, errors = push(three, f"--{kind}", f"http://127.0.0.1:{taken.getsockname()[1]}")
            assert code == 2 and "cannot be reached" in errors and "refused" in errors


def test_headers_come_from_a_file(server, push, three, tmp_path):
    path = written(tmp_path / "headers", "Authorization: Bearer geheim\n\nX-Scope-OrgID: team\n")
    assert push(three, "--otlp", f"{server.url}/proxy/otlp", "--headers", path)[0] == 0
    asked, headers, _ = server.taken[0]
    assert asked == "/proxy/otlp"  # a path of the user's own
    assert headers["Authorization"] == "Bearer geheim" and headers["X-Scope-Orgid"] == "team"
    path.write_text("no header")
    for name, why in ((path, "not Name: value"), (tmp_path / "none", "cannot be read")):
        code, _, errors = push(three, "--otlp", server.url, "--headers", name)
        assert code == 2 and why in errors


@pytest.mark.parametrize(
    "url, why",
    [
        ("grpc://x:1", "is not http"),
        ("http://me:secret@x", "--headers FILE"),
        ("http://[x", "is no URL"),
        ("", "is not http"),
    ],
)
def test_a_url_that_cannot_be_one(push, three, url, why):
    code, _, errors = push(three, "--otlp", url)
    assert code == 2 and why in errors and "secret" not in errors


def test_hostile_rows_make_whole_messages(server, push, tmp_path):
    """Values that a forged row may have: below zero, and of no moment."""
    odd = with_all_frames(service="\u202e\x1b[31m</script>", pod="x" * 4000)
    odd["holders"][0]["frames"][0].update(offset=-1, line=-5)
    odd["holders"][1].update(count=-3)
    odd["holders"].append(None)
    odd["holders"].append({**odd["holders"][0], "bytes": -1, "frames": [None]})
    path = written(tmp_path / "rows.json", line(odd))
    for kind in ("otlp", "pyroscope", "parca"):
        code, result, errors = push(path, f"--{kind}", server.url)
        assert code == 0 and result["pushed"] == 1, errors
    pair = json.loads(server.taken[1][2])["series"][0]["labels"]
    assert max(len(each["value"]) for each in pair) == 1000
    server.taken = server.taken[:1]
    assert list(otlp_requests(server))
