"""Real programs that put themselves or others into a sandbox do as they do alone, as an ordinary user."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest
from conftest import written

MODES = ["sampled", "exact", "off"]
PAGE = """<html><body><p id="result"></p><canvas id="canvas"></canvas><script>
const told = [];
const words = [];
for (let i = 0; i < 200000; ++i) words.push("word " + i);
told.push(words.join("").length);
try { new ArrayBuffer(2 ** 45); told.push("made"); } catch (error) { told.push(error.name); }
const blocks = [];
for (let i = 0; i < 64; ++i) blocks.push(new Uint8Array(1 << 20).fill(i));
told.push(blocks.reduce((sum, block) => sum + block[5], 0));
told.push(document.getElementById("canvas").toDataURL().length > 100);
document.getElementById("result").textContent = told.join(" ");
</script></body></html>
"""
ALLOCATES = (
    "import subprocess; blocks = [bytes(200_000) for _ in range(300)];"
    " print(sum(map(len, blocks)), subprocess.run(['echo', 'child'], capture_output=True).stdout)"
)


def status_of(process: Path) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())


class SandboxesOf:
    """While it is entered: which sandboxes the processes of a user are in, and whether they are recorded."""

    def __init__(self, uid: int):
        self.uid = str(uid)
        self.seen: dict[str, bool] = {}
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> SandboxesOf:
        self._watcher.start()
        return self

    def __exit__(self, *error) -> None:
        self._ended.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError, KeyError):
                    self._look_at(process)

    def _look_at(self, process: Path) -> None:
        status = status_of(process)
        if status["Uid"].split()[0] != self.uid:
            return
        in_namespaces = os.readlink(process / "ns/user") != os.readlink("/proc/self/ns/user")
        if in_namespaces and status["Seccomp"] == "2":
            loaded = "liboomrec.so" in (process / "maps").read_text()
            self.seen[process.name] = self.seen.get(process.name, False) or loaded


def command_of_chromium(account) -> list:
    page = written(account.users.scratch / "page.html", PAGE)
    page.chmod(0o644)
    return ["chromium", "--headless", "--disable-gpu", "--dump-dom", f"file://{page}"]


@pytest.mark.needs_program("chromium")
@pytest.mark.parametrize(
    "mode", ["exact", *(pytest.param(mode, marks=pytest.mark.full) for mode in ("sampled", "off"))]
)
def test_chromium_in_its_sandbox(users, mode):
    """User namespace, empty root and seccomp filter of its renderers; its zygote forks them without exec."""
    command = command_of_chromium(users.victim)
    with SandboxesOf(users.victim.uid) as alone:
        without = users.victim(*command)
    if without.returncode != 0 or not alone.seen:
        pytest.skip(f"Chromium has no sandbox here: {without.stderr[-300:]}")
    assert "RangeError 2016 true" in without.stdout, without.stdout

    recorded = {"LD_PRELOAD": str(users.library), "OOMREC_MODE": mode}
    with SandboxesOf(users.victim.uid) as sandboxes:
        run = users.victim(*command, env=recorded)
    assert (run.stdout, run.returncode) == (without.stdout, 0), run.stderr
    assert "oomrec" not in run.stderr, run.stderr
    assert any(sandboxes.seen.values()), "no sandboxed process with the library was seen"


@pytest.mark.needs_program("bwrap")
@pytest.mark.parametrize("mode", MODES)
def test_bubblewrap(users, mode):
    """With a read-only file system. A new pid namespace needs a new /proc, which a container may not mount."""
    scratch = users.scratch
    command = ["bwrap", "--ro-bind", "/", "/", "--bind", scratch, scratch, "--dev", "/dev", "--unshare-user",
               "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", users.python, "-c", ALLOCATES]  # fmt: skip
    without = users.victim(*command)
    if without.returncode != 0:
        pytest.skip(f"bwrap: {without.stderr}")
    run = users.victim(
        *command,
        env={"LD_PRELOAD": str(users.library), "OOMREC_MODE": mode},
    )
    assert (run.stdout, run.stderr, run.returncode) == (without.stdout, without.stderr, 0)


@pytest.mark.needs_program("man")
@pytest.mark.parametrize("mode", MODES)
def test_helpers_of_man(plain, preload, tmp_path, mode):
    """Their filter refuses the system calls that make a recording: they run without one, and print no advice."""
    page = tmp_path / "page.1"
    page.write_text(".TH PAGE 1\n.SH NAME\npage \\- a page\n.SH TEXT\n" + "Some words.\n" * 500)
    command = ["man", "-P", "cat", "-l", page]
    without = plain(*command)
    if without.exit_code != 0:
        pytest.skip(str(without))
    run = preload(*command, env={"OOMREC_MODE": mode})
    assert (run.stdout, run.stderr, run.exit_code) == (without.stdout, without.stderr, 0)
