"""`oomrec attach` to servers under load, again and again: no request fails, and no result changes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest
from attach_targets import copies, needs_tracing
from conftest import rounds, written
from servers import (
    HttpLoad,
    Postgres,
    children_of,
    free_port,
    open_directory,
    still_runs,
    transactions,
    wait_for_children,
    wait_for_port,
)

pytestmark = needs_tracing

ANSWER = b"42 " * 5000


def attach_and_detach(oomrec, pids: list[int], times: int, work_s: float = 0.15) -> None:
    for number in range(times):
        for pid in pids:
            mode = ("sampled", "exact")[number % 2]
            oomrec("attach", "--mode", mode, pid, exits=0)
            time.sleep(work_s)
            assert oomrec("top", "--once", pid).exit_code == 0
            oomrec("attach", "--detach", pid, exits=0)


def serves_undisturbed(oomrec, process, port: int, pids: list[int], times: int) -> None:
    wait_for_port(port, process)
    with HttpLoad(port, ANSWER) as load:
        time.sleep(0.3)
        attach_and_detach(oomrec, pids, times)
        attached_until = load.requests
        time.sleep(0.3)
    print(f"{load.requests} requests, {len(load.failures)} failed, slowest {load.slowest_s:.3f} s")
    assert load.failures == []
    assert load.requests > attached_until > 50
    assert process.poll() is None and all(still_runs(pid) for pid in pids)
    for pid in pids:
        assert copies(pid) <= 2, "one copy serves again, once no thread is in it"


@pytest.fixture
def shared(oomrec):
    """For servers that run as another user than the test."""
    with open_directory() as directory:
        for name in ("SESSION", "DUMP"):
            oomrec.environment[f"OOMREC_{name}_DIR"] = str(directory / name)
            (directory / name).mkdir()
            (directory / name).chmod(0o1777)
        yield directory


# --- Web servers ---------------------------------------------------------------------------------

WSGI = """
import threading
kept = []
def application(environ, start_response):
    kept.append([str(i) for i in range(50)] + [bytearray(3000)])
    del kept[:-100]
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "15000")])
    return [b"42 " * 5000]
"""


@pytest.mark.needs_module("gunicorn")
@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_gunicorn(oomrec, plain, tmp_path, worker):
    """Its workers and the master that supervises them, which would replace one that hangs."""
    (tmp_path / "served.py").write_text(WSGI)
    port = free_port()
    words = ["-b", f"127.0.0.1:{port}", "-w", "2", "-k", worker, "--threads", "3", "-t", "20"]
    # A worker that a busy machine did not run for two seconds closes idle connections, by default.
    words += ["--keep-alive", "60"]
    process = plain.start(
        sys.executable, "-m", "gunicorn", *words, "served:application", stderr=subprocess.DEVNULL
    )
    wait_for_port(port, process)
    workers = wait_for_children(process, 2)
    attached = [*workers[: rounds(1, 2)], process.pid]
    serves_undisturbed(oomrec, process, port, attached, rounds(2, 20))
    assert children_of(process.pid) == workers


@pytest.mark.needs_program("nginx")
def test_nginx(oomrec, plain, tmp_path, shared):
    """Workers that have given up root, if it is root who starts them."""
    port = free_port()
    configuration = tmp_path / "nginx.conf"
    paths = "".join(
        f"{name}_temp_path {tmp_path}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration.write_text(
        f"worker_processes 2; daemon off; pid {tmp_path}/pid; error_log {tmp_path}/errors;\n"
        f"events {{}}\nhttp {{ access_log off; {paths} gzip on; sendfile off;\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{\n"
        f"return 200 '{ANSWER.decode()[:3000]}'; }} }} }}\n"
    )
    process = plain.start("nginx", "-p", tmp_path, "-c", configuration)
    wait_for_port(port, process)
    workers = wait_for_children(process, 2)
    with HttpLoad(port, ANSWER[:3000]) as load:
        attach_and_detach(oomrec, [*workers, process.pid], rounds(2, 20))
    assert load.failures == [] and load.requests > 50
    assert children_of(process.pid) == workers
    assert "signal" not in (tmp_path / "errors").read_text()


NODE = """
const http = require("http");
const kept = [];
const answer = "42 ".repeat(5000);
http.createServer((request, response) => {
  kept.push(Buffer.alloc(20000));
  if (kept.length > 100) kept.shift();
  response.writeHead(200, {"Content-Type": "text/plain"});
  response.end(answer);
}).listen(Number(process.argv[2]), "127.0.0.1");
"""


@pytest.mark.needs_program("node")
def test_node(oomrec, plain, tmp_path):
    (tmp_path / "serve.js").write_text(NODE)
    port = free_port()
    process = plain.start("node", tmp_path / "serve.js", port)
    serves_undisturbed(oomrec, process, port, [process.pid], rounds(3, 20))


JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
public class Serve {
  public static void main(String[] words) throws Exception {
    HttpServer server = HttpServer.create(
        new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
    byte[] answer = "42 ".repeat(5000).getBytes();
    server.createContext("/", exchange -> {
      byte[][] garbage = new byte[50][2000];
      garbage[7] = answer;
      exchange.sendResponseHeaders(200, answer.length);
      exchange.getResponseBody().write(garbage[7]);
      exchange.close();
    });
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.start();
  }
}
"""


@pytest.mark.full
@pytest.mark.needs_program("java", "javac")
def test_java(oomrec, plain, tmp_path):
    (tmp_path / "Serve.java").write_text(JAVA)
    assert plain("javac", "Serve.java").exit_code == 0
    port = free_port()
    process = plain.start(
        "java", "-Xmx64m", "-Dsun.net.httpserver.nodelay=true", "-cp", tmp_path, "Serve", port
    )
    serves_undisturbed(oomrec, process, port, [process.pid], rounds(3, 20))


# --- Stores --------------------------------------------------------------------------------------


@pytest.mark.needs_program("redis-server", "redis-cli", "redis-benchmark")
def test_redis(oomrec, plain, tmp_path):
    port = free_port()
    words = f"--port {port} --save 1 1 --dir {tmp_path} --bind 127.0.0.1".split()
    process = plain.start("redis-server", *words, stdout=subprocess.DEVNULL)
    wait_for_port(port, process)
    count = 60_000 * rounds(1, 40)
    load = plain.start(
        "redis-benchmark", "-p", port, "-t", "incr", "-n", count, "-c", "8", "-q",
    )  # fmt: skip
    attach_and_detach(oomrec, [process.pid], rounds(3, 20))
    ended = plain.finish(load, timeout=300)
    assert ended.exit_code == 0 and "error" not in ended.stderr.lower(), str(ended)
    asked = plain("redis-cli", "-p", port, "GET", "counter:__rand_int__")
    assert asked.stdout == f"{count}\n", str(asked)
    assert process.poll() is None


@pytest.fixture
def postgres(oomrec, shared):
    server = Postgres(shared)
    yield server
    server.stop()


@pytest.mark.full
def test_postgres(oomrec, postgres):
    """The server that forks, and its backends."""
    seconds = rounds(8, 60)
    load = postgres.bench("-c", "4", "-j", "2", "-T", str(seconds))
    time.sleep(1)
    backends = postgres.backends()
    until = time.monotonic() + seconds - 3
    attached = 0
    while time.monotonic() < until:
        pid = [postgres.process.pid, *backends][attached % (len(backends) + 1)]
        attach_and_detach(oomrec, [pid], 1, 0.05)
        attached += 1
    made = transactions(load)
    print(f"{made} transactions, attached {attached} times")
    assert attached > 5 and made > 100
    assert set(backends) >= set(postgres.backends()), "none was replaced"
    postgres.require_consistent()


@pytest.mark.full
def test_commands_die_at_a_server_that_forks(oomrec, plain, postgres, build_dir, library):
    """Each connection is a new process: some are attached to as they begin, or end."""
    steps = ["seized", "stopped", "written", "redirected", "blocked", "calling", "done"]
    steps += ["returning", "unblocked", "released", "never"]
    settings = [f"OOMREC_{name}_DIR={postgres.log.parent / name}" for name in ("SESSION", "DUMP")]
    chance = random.Random(7)
    seconds = rounds(10, 120)
    load = postgres.bench("-C", "-c", "4", "-j", "2", "-T", str(seconds))
    time.sleep(0.5)
    until = time.monotonic() + seconds - 3
    server = postgres.process.pid
    outcomes = {"killed": 0, "attached": 0, "refused": 0, "detached": 0}
    while time.monotonic() < until:
        pid = chance.choice([server, *postgres.backends()])
        step = chance.choice(steps)
        run = plain(build_dir / "tests/integration/attach_dies", step, pid, library, *settings)
        assert run.exit_code in (0, 2, 128 + signal.SIGKILL), str(run)
        outcomes[{0: "attached", 2: "refused"}.get(run.exit_code, "killed")] += 1
        if chance.random() < 0.5:
            command = oomrec.start("attach", "--detach", pid)
            time.sleep(chance.random() * 0.03)
            if chance.random() < 0.3:
                command.kill()
            run = oomrec.finish(command)
            assert run.exit_code in (0, 1, 2, 128 + signal.SIGKILL), str(run)
            outcomes["detached"] += run.exit_code == 0
    made = transactions(load)
    print(f"{made} transactions, {outcomes}")
    assert outcomes["killed"] > 5 and made > 50
    assert postgres.process.poll() is None
    postgres.require_consistent()


# --- A training ----------------------------------------------------------------------------------

# It trains again and again, until its input is closed.
TRAINING = """
import select, sys, torch
torch.use_deterministic_algorithms(True)
torch.set_num_threads(2)
def losses():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(300):
        batch = torch.randn(128, 64)
        loss = torch.nn.functional.mse_loss(model(batch), batch[:, :8])
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        yield loss.item()
alone, attached_to = list(losses()), []
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    attached_to.append(list(losses()) == alone)
print(all(attached_to), len(attached_to) > 1)
"""


@pytest.mark.needs_torch
def test_a_training_has_the_same_losses(oomrec, plain, tmp_path):
    script = written(tmp_path / "train.py", TRAINING)
    process = plain.start(sys.executable, script, stdin=subprocess.PIPE).once("ready")
    attach_and_detach(oomrec, [process.pid], rounds(2, 40))
    ended = plain.finish(process, input="", timeout=300)
    assert ended.exit_code == 0 and ended.stderr == "", str(ended)
    assert ended.stdout == "True True\n"
