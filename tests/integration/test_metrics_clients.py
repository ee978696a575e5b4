"""Slow, hostile or broken clients of `oomrec watch --metrics` do not delay the others."""

import contextlib
import socket
import struct
import time

import pytest
from exposition import Exposition, MetricsWatch
from watching import wait_for

QUIET = {"MEMORY_PRESSURE_WATCH": "/dev/null"}
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def metrics(oomrec):
    return lambda *words, **options: MetricsWatch(oomrec, *words, **{**QUIET, **options})


def connect(watching) -> socket.socket:
    host, port = watching.address
    return socket.create_connection((host, int(port)), timeout=300)


def read_all(client) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            received += piece
    return received


def ask(watching, request: bytes) -> tuple[str, dict, bytes]:
    """Status, headers and body of the response."""
    with connect(watching) as client:
        client.sendall(request)
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["Connection"] == "close"
    return status, headers, body


def is_served(watching) -> bool:
    """A response comes long before silent clients are disconnected, after ten seconds."""
    began = time.monotonic()
    assert "oomrec_build_info" in watching.scrape().families
    return time.monotonic() - began < 5


@pytest.mark.parametrize(
    "request_, status",
    [
        (GET, "200 OK"),
        (b"GET /metrics?a=b HTTP/1.0\n\n", "200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "200 OK"),
        (b"GET /nowhere HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed"),
        (b"DELETE / HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"get /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"GET http://a/metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"PRI * HTTP/2.0\r\n\r\n", "400 Bad Request"),
        (b"\r\n\r\n", "400 Bad Request"),
        (b"\x16\x03\x01\x00\xff\n\n", "400 Bad Request"),
        (b"GET /" + b"a" * 70_000, "431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 12_000, "431 Request Header Fields Too Large"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else value,
)
def test_every_request_has_its_answer(metrics, request_, status):
    watching = metrics()
    line, headers, body = ask(watching, request_)
    assert line == f"HTTP/1.1 {status}"
    assert int(headers["Content-Length"]) == len(body) > 0
    assert ("Allow" in headers) == status.startswith("405")
    assert is_served(watching)


def test_head_has_no_body(metrics):
    watching = metrics()
    status, headers, body = ask(watching, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert status == "HTTP/1.1 200 OK" and body == b""
    assert int(headers["Content-Length"]) == len(watching.text())


def test_a_request_may_come_in_pieces(metrics):
    watching = metrics()
    with connect(watching) as client:
        for byte in GET:
            client.sendall(bytes([byte]))
            time.sleep(0.002)
        client.shutdown(socket.SHUT_WR)
        assert Exposition(read_all(client).partition(b"\r\n\r\n")[2].decode())


def test_silent_clients_do_not_delay_others(metrics):
    watching = metrics()
    with contextlib.ExitStack() as stack:
        for number in range(100):
            client = stack.enter_context(connect(watching))
            if number % 2:
                client.sendall(b"GET /metrics HT")
        assert is_served(watching)
        # Waiting for them costs nothing, either.
        wait_for(watching.is_sleeping)
    assert is_served(watching)


def test_clients_that_read_nothing_do_not_delay_others(metrics):
    watching = metrics()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect((watching.address[0], int(watching.address[1])))
            stack.enter_context(client).sendall(GET)
        assert is_served(watching)
        wait_for(watching.is_sleeping)


def test_endless_and_vanishing_clients_do_not_delay_others(metrics):
    watching = metrics()
    for number in range(20):
        with connect(watching) as client, contextlib.suppress(OSError):
            client.sendall(GET if number % 2 else b"x")
            # RST instead of an orderly close.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with connect(watching) as client:
        client.sendall(GET)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 64 * 2**20:
                sent += client.send(b"a" * 65536)
        assert sent < 64 * 2**20  # the server cut it off
    assert is_served(watching)


def test_a_connection_times_out(metrics):
    watching = metrics()
    with connect(watching) as client:
        client.sendall(b"GET")
        began = time.monotonic()
        client.settimeout(60)
        assert read_all(client) == b""
        assert time.monotonic() - began > 8


@pytest.mark.parametrize("at", ["0", ":0", "127.0.0.1:0", "localhost:0"])
def test_the_default_address_is_loopback(metrics, at):
    watching = metrics(at=at)
    assert watching.address[0] in ("127.0.0.1", "::1")
    assert is_served(watching)


@pytest.mark.parametrize("at", ["[::1]:0", "[::]:0"])
def test_ipv6(metrics, at):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    watching = metrics(at=at)
    with socket.create_connection(("::1", int(watching.address[1])), timeout=300) as client:
        client.sendall(GET)
        assert b"oomrec_build_info" in read_all(client)


def test_both_loopback_families_listen(metrics):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    watching = metrics(at=str(port))
    assert is_served(watching)
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        assert is_served_at("::1", port)


def is_served_at(host: str, port: int) -> bool:
    with socket.create_connection((host, port), timeout=300) as client:
        client.sendall(GET)
        return b"oomrec_build_info" in read_all(client)
