"""Stores to ship bundles to: a small HTTP server that fails as it is told, and SeaweedFS."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

KEY, SECRET = "AKIAOFTHETEST", "secret/of+the/test"


class Store:
    """An object store in a directory. `answers` are taken one by one, then every request is served.

    A number is a status without effect; "cut" closes the connection in the middle of the object;
    "lost" stores the object and closes the connection without an answer; an Event is waited for.
    """

    def __init__(self, directory: Path, port: int = 0):
        self.directory = directory
        self.answers: list[int | str | threading.Event] = []
        self.requests: list[str] = []  # names of objects, in the order of the requests
        self.watch = lambda headers: None  # called for each request, while the client waits
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                store.handle(self)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def handle(self, request: http.server.BaseHTTPRequestHandler) -> None:
        name = urllib.parse.unquote(urllib.parse.urlsplit(request.path).path)
        self.requests.append(name)
        self.watch(request.headers)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, threading.Event):
            answer.wait(60)
            answer = None
        length = int(request.headers["Content-Length"])
        if answer == "cut":
            request.rfile.read(length // 2)
            return self._hang_up(request)
        body = request.rfile.read(length)
        if len(body) < length:
            return self._hang_up(request)  # the client is gone, and with it the rest
        status = answer if isinstance(answer, int) else self.put(name, body, request.headers)
        if answer == "lost":
            return self._hang_up(request)
        with contextlib.suppress(OSError):  # the client is gone
            request.send_response(status)
            request.send_header("Content-Length", "0")
            request.end_headers()
        return None

    @staticmethod
    def _hang_up(request) -> None:
        request.close_connection = True
        with contextlib.suppress(OSError):
            request.connection.shutdown(socket.SHUT_RDWR)

    def put(self, name: str, body: bytes, headers) -> int:
        """Complete or not at all, and only the first of a name."""
        path = self.directory / name.lstrip("/")
        if headers["If-None-Match"] == "*" and path.exists():
            return 412
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{threading.get_ident()}")
        partial.write_bytes(body)
        try:
            os.link(partial, path)
        except FileExistsError:
            return 412
        finally:
            partial.unlink()
        return 200

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def rows(directory: Path) -> dict[str, dict]:
    """The rows in a store, by the names of their objects."""
    return {path.name: json.loads(path.read_text()) for path in directory.rglob("rows/*/*.json")}


def archives(directory: Path) -> list[Path]:
    return sorted(directory.rglob("raw/*/*.tar.*"))


def aws(endpoint: str, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "eu-central-1",
    }


# --- SeaweedFS -------------------------------------------------------------------------------------

WEED = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
WRITER, WRITER_SECRET = "AKIAWRITER", "secret-of-the-writer"
GUEST, GUEST_SECRET = "AKIAGUEST", "secret-of-the-guest"  # may do what a bucket's policy lets it


def free_port() -> int:
    """Free, and so is the one 10,000 above it, which SeaweedFS takes for gRPC."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port < 50_000:
                with contextlib.suppress(OSError):
                    other.bind(("127.0.0.1", port + 10_000))
                    return port


class SeaweedFS:
    """A real object store, with an administrator's key and one that may only write."""

    def __init__(self, directory: Path):
        self.directory = directory
        for _ in range(3):
            self._ports = {name: free_port() for name in ("s3", "master", "volume", "filer")}
            self._process = self._start()
            if self._process:
                break
        assert self._process, "SeaweedFS does not start"
        self.endpoint = f"http://127.0.0.1:{self._ports['s3']}"
        until = time.monotonic() + 60
        while self.curl("-X", "PUT", path="/oom") not in (200, 409):  # it has no volume yet
            assert time.monotonic() < until
            time.sleep(0.2)

    def start_again(self) -> None:
        """After close(), with all objects."""
        self._process = self._start()
        assert self._process, "SeaweedFS does not start again"

    def _start(self) -> subprocess.Popen | None:
        def identity(name, key, secret, actions):
            return {
                "name": name,
                "credentials": [{"accessKey": key, "secretKey": secret}],
                "actions": actions,
            }

        config = self.directory / "s3.json"
        identities = [
            identity("all", KEY, SECRET, ["Admin"]),
            identity("pod", WRITER, WRITER_SECRET, ["Write:oom"]),
            identity("guest", GUEST, GUEST_SECRET, []),
        ]
        config.write_text(json.dumps({"identities": identities}))
        words = [
            *("server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.directory}", "-s3"),
            # Off: they have fixed ports, and it ends if one is taken.
            *("-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={config}"),
            *(f"-{name}.port={port}" for name, port in self._ports.items()),
            *("-volume.max=8", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"),
        ]
        process = subprocess.Popen(
            [WEED, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        endpoint = f"http://127.0.0.1:{self._ports['s3']}"
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            try:
                urllib.request.urlopen(endpoint, timeout=5).close()
                return process
            except urllib.error.HTTPError:
                return process  # it refuses a request without a key
            except OSError:
                time.sleep(0.1)
        process.kill()
        process.wait()
        return None

    def curl(self, *words, path: str, key: str = KEY, secret: str = SECRET) -> int:
        """The status of a request."""
        run = subprocess.run(
            [
                *(
                    "curl",
                    "-s",
                    "-w",
                    "%{http_code}",
                    "--user",
                    f"{key}:{secret}",
                ),
                *("--aws-sigv4", "aws:amz:us-east-1:s3", *words, self.endpoint + path),
                *(() if "-o" in words else ("-o", os.devnull)),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        return int(run.stdout or 0)

    def let_guest_put(self) -> None:
        """By the bucket's policy, which lets it do nothing else."""
        statement = {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::000000000000:user/guest"},
            "Action": "s3:PutObject",
            "Resource": "arn:aws:s3:::oom/*",
        }
        policy = self.directory / "policy.json"
        policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
        assert self.curl("-T", policy, path="/oom?policy=") == 204

    def download(self, bucket: str, to: Path) -> None:
        """All objects of a bucket, below their names."""
        self._download(f"/buckets/{bucket}/", to)

    def _download(self, folder: str, to: Path) -> None:
        filer = f"http://127.0.0.1:{self._ports['filer']}"  # asks for no key, and pages less
        words = {"headers": {"Accept": "application/json"}}
        url = f"{filer}{urllib.parse.quote(folder)}?limit=1000000"
        with urllib.request.urlopen(urllib.request.Request(url, **words), timeout=300) as answer:
            entries = json.load(answer)["Entries"] or []
        to.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            name = entry["FullPath"].rpartition("/")[2]
            if entry["Mode"] & (1 << 31):  # a directory, in Go's bits
                self._download(f"{folder}{name}/", to / name)
                continue
            url = f"{filer}{urllib.parse.quote(folder + name)}"
            with urllib.request.urlopen(url, timeout=300) as answer:
                (to / name).write_bytes(answer.read())

    def close(self) -> None:
        self._process.kill()  # it would wait half a minute for its parts
        self._process.wait()
