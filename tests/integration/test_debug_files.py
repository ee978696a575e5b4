"""Names from separate debug information: in directories and on servers."""

import http.server
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from terminal import printed_on_terminal

pytestmark = [pytest.mark.needs_program("gcc"), pytest.mark.needs_program("objcopy")]

PROGRAM = """\
#include <stdlib.h>
static void *volatile kept[64];
static inline __attribute__((always_inline)) void *ask(size_t bytes) {
  return malloc(bytes);
}
static __attribute__((noinline)) int hoard(void) {
  for (int i = 0; i < 64; ++i)
    if ((kept[i] = ask(8 << 20)) == NULL) return 1;
  return 0;
}
int main(void) { return hoard(); }
"""
NAMED = ["ask  ", "hoard.c:4  inlined", "hoard.c:8\n"]


class Stripped:
    """A stripped program, its debug file, and a bundle."""

    def __init__(self, oomrec, folder: Path):
        self.oomrec = oomrec
        self.folder, apart = folder / "src", folder / "apart"
        self.folder.mkdir()
        apart.mkdir()  # beside the program it would be found without an option
        self.program, self.debug = self.folder / "hoard", apart / "hoard.debug"
        (self.folder / "hoard.c").write_text(PROGRAM)
        self.run("gcc", "-O1", "-g", "-Wl,--build-id=sha1", "hoard.c", "-o", self.program)
        self.run("objcopy", "--only-keep-debug", self.program, self.debug)
        self.run("objcopy", "--strip-all", self.program)
        notes = subprocess.check_output(["readelf", "-n", self.program], text=True)
        self.build_id = notes.partition("Build ID: ")[2].split()[0]
        self.bundle = oomrec("run", "--limit", "64M", "--", self.program).only_bundle()
        (self.bundle / "symbols.json").unlink()

    def run(self, *command) -> None:
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, timeout=300)

    def move_debug_to(self, directory: Path) -> None:
        place = directory / ".build-id" / self.build_id[:2]
        place.mkdir(parents=True)
        self.debug.rename(place / f"{self.build_id[2:]}.debug")

    def shown(self, *options, **more) -> str:
        run = self.oomrec("show", "--full", *options, self.bundle, **more, exits=0)
        assert run.stderr == "" or "env" in more, run.stderr
        return run.stdout


def is_named(text: str) -> bool:
    found = [line in text for line in NAMED]
    assert all(found) or not any(found), text
    return all(found)


@pytest.fixture
def stripped(oomrec, tmp_path):
    made = Stripped(oomrec, tmp_path)
    assert not is_named(made.shown("--no-cache"))
    return made


def test_a_directory_by_build_id(stripped, tmp_path):
    stripped.move_debug_to(tmp_path / "debug")
    option = ["--debug-dir", f"/nowhere:{tmp_path / 'debug'}"]

    assert is_named(stripped.shown(*option))
    assert is_named(stripped.shown(*option))  # from the cache
    assert not is_named(stripped.shown())
    assert is_named(stripped.shown("--debug-dir", "debug"))  # relative


def test_the_program_file_may_be_missing(stripped, tmp_path):
    stripped.move_debug_to(tmp_path / "debug")
    stripped.program.unlink()

    assert str(stripped.program) in stripped.shown()  # a note names the missing file
    text = stripped.shown("--debug-dir", tmp_path / "debug")
    assert is_named(text) and "so without names" not in text


def test_debug_files_of_another_build_are_ignored(stripped, tmp_path):
    stripped.move_debug_to(tmp_path / "debug")
    file = next((tmp_path / "debug").rglob("*.debug"))
    data = bytearray(file.read_bytes())
    at = data.index(bytes.fromhex(stripped.build_id))
    data[at] ^= 1
    file.write_bytes(data)
    stripped.program.unlink()

    assert not is_named(stripped.shown("--debug-dir", tmp_path / "debug"))


def test_compressed_debug_information(stripped, tmp_path):
    stripped.run("objcopy", "--compress-debug-sections=zlib", stripped.debug)
    sections = subprocess.check_output(["readelf", "-SW", stripped.debug], text=True)
    assert any(" C " in line for line in sections.splitlines() if ".debug_info" in line)
    stripped.move_debug_to(tmp_path / "debug")
    assert is_named(stripped.shown("--debug-dir", tmp_path / "debug"))


@pytest.mark.needs_program("dwz")
def test_shared_debug_information(stripped, tmp_path):
    """dwz moves what two files share into a third, found by its build-id."""
    other = shutil.copy(stripped.debug, stripped.folder / "other.debug")
    stripped.run("dwz", "-m", "common.debug", stripped.debug, other)
    common = stripped.folder / "common.debug"
    assert b".gnu_debugaltlink" in stripped.debug.read_bytes()
    notes = subprocess.check_output(["readelf", "-n", common], text=True)
    build_id = notes.partition("Build ID: ")[2].split()[0]
    stripped.move_debug_to(tmp_path / "debug")
    option = ["--debug-dir", tmp_path / "debug"]
    place = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True, exist_ok=True)
    common.rename(place)
    assert is_named(stripped.shown(*option))
    place.unlink()
    assert "ask  " not in stripped.shown("--no-cache", *option)


class Server(http.server.ThreadingHTTPServer):
    """Answers like debuginfod(8), and records the requests."""

    def __init__(self, files: dict, manner: str):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.manner = files, manner
        self.asked: list[str] = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def end(self) -> None:
        self.ending.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.manner == "silent":
            self.server.ending.wait(60)
            return
        data = self.server.files.get(self.path)
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        for part in (data or b"")[:1000], (data or b"")[1000:]:
            self.wfile.write(part)
            if self.server.manner == "slow" and data is not None:
                self.server.ending.wait(1.5)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(request, stripped):
    files = {f"/buildid/{stripped.build_id}/debuginfo": stripped.debug.read_bytes()}
    stripped.debug.unlink()
    made = Server(files, getattr(request, "param", "prompt"))
    yield made
    made.end()


@pytest.fixture
def asking(server, tmp_path):
    """The environment of a command that may query the server."""
    cache = tmp_path / "fetched"
    return {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(cache)}


needs_client = pytest.mark.needs_file("/usr/lib/*/libdebuginfod.so.1")


@needs_client
def test_a_server_is_queried_only_on_request(stripped, server, asking):
    for command in ["show", "stats", "tree"]:
        run = stripped.oomrec(command, "--no-cache", stripped.bundle, env=asking)
        assert run.exit_code == 0
    assert server.asked == []

    assert is_named(stripped.shown("--debuginfod", env=asking))
    assert f"/buildid/{stripped.build_id}/debuginfo" in server.asked
    asked = len(server.asked)
    assert is_named(stripped.shown("--debuginfod", "--no-cache", env=asking))  # the client's cache
    assert len(server.asked) == asked
    assert not is_named(stripped.shown(env=asking))


@needs_client
def test_a_server_provides_missing_names(stripped, asking):
    stripped.program.unlink()
    assert is_named(stripped.shown("--debuginfod", env=asking))


@needs_client
@pytest.mark.parametrize("server", ["slow"], indirect=True)
def test_progress_is_shown_on_a_terminal(stripped, build_dir, asking):
    line = [build_dir / "oomrec", "show", "--debuginfod", stripped.bundle]
    on_stderr = ["sh", "-c", '"$@" 2>&1 >/dev/null', "sh", *line]
    printed = printed_on_terminal(on_stderr, {**stripped.oomrec.environment, **asking})
    assert b"\r\x1b[Kfetching debug information of hoard" in printed
    assert b" of 0 B" not in printed and b"KiB" in printed
    assert printed.endswith(b"\r\x1b[K")  # the line is erased


@needs_client
@pytest.mark.parametrize("server", ["silent"], indirect=True)
def test_an_unresponsive_server_is_given_up_once(stripped, server, asking):
    run = stripped.oomrec(
        "show", "--debuginfod", stripped.bundle, env={**asking, "DEBUGINFOD_TIMEOUT": "1"}
    )
    assert run.exit_code == 0 and not is_named(run.stdout)
    assert run.stderr.count("no server of DEBUGINFOD_URLS answered within 1 s") == 1
    assert len(server.asked) == 1


def test_missing_servers_are_reported(stripped):
    run = stripped.oomrec("show", "--debuginfod", stripped.bundle, env={"DEBUGINFOD_URLS": None})
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.startswith("oomrec show: --debuginfod: DEBUGINFOD_URLS names no server\n")


@needs_client
@pytest.mark.needs_program("debuginfod")
def test_a_real_server(stripped, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "debuginfod",
        "-F",
        "-p",
        str(port),
        "-d",
        str(tmp_path / "index"),
        stripped.debug.parent,
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "DEBUGINFOD_URLS": ""})  # fmt: skip
    try:
        asking = {
            "DEBUGINFOD_URLS": f"http://127.0.0.1:{port}",
            "DEBUGINFOD_CACHE_PATH": str(tmp_path / "fetched"),
        }
        until = time.monotonic() + 60  # debuginfod has to index the file first
        (tmp_path / "fetched").mkdir()
        (tmp_path / "fetched" / "cache_miss_s").write_text("0")
        while not is_named(stripped.shown("--debuginfod", env=asking)):
            assert time.monotonic() < until and server.poll() is None
            time.sleep(0.1)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=300)
