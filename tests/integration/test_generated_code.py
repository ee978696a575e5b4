"""Code that was made at run time has no unwind information: stacks go on through it, and with a map of it
its functions have names."""

import platform
import sys
from pathlib import Path

import pytest
from pythons import PYTHON_VERSIONS


def first(shown: dict) -> list[str]:
    return [frame["function"] for frame in shown["holders"][0]["stack"]]


def assert_none_is_cut(shown: dict) -> None:
    assert shown["recording"]["truncated_stacks"] == 0, shown["recording"]
    assert not any("further out" in (name or "") for name in first(shown)), shown["holders"][0]


PYTHON = """
kept = []
def leak(): kept.append(bytearray(100_000))
def serve(count):
    for _ in range(count): leak()
def in_a_thread(count):
    import threading
    thread = threading.Thread(target=serve, args=(count,))
    thread.start()
    thread.join()
serve(300)
in_a_thread(300)
"""


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@pytest.mark.parametrize(
    "version",
    [version for version in PYTHON_VERSIONS if int(version.split(".")[1].rstrip("t")) >= 12],
)
def test_pythons_trampolines(oomrec, python, tmp_path, version, mode):
    """-X perf calls each function of Python through a few instructions of its own."""
    (tmp_path / "leaks.py").write_text(PYTHON)
    run = oomrec(
        "run", "--mode", mode, "--dump-at-exit", "--", python(version), "-X", "perf", "leaks.py"
    )
    shown = oomrec.json("show", run.only_bundle())
    assert_none_is_cut(shown)
    stacks = [
        [frame["function"] for frame in holder["stack"] if frame["kind"] == "python"]
        for holder in shown["holders"][:2]
    ]
    assert ["leak", "serve", "<module>"] in stacks, stacks
    assert ["leak", "serve", "run", "_bootstrap_inner", "_bootstrap"] in [
        [name.rsplit(".")[-1] for name in stack] for stack in stacks
    ]
    outermost = shown["holders"][0]["stack"][-1]["function"]
    assert outermost in ("_start", "clone3", "__clone3"), shown["holders"][0]["stack"][-3:]


LUA = """
local ffi = require("ffi")
ffi.cdef[[void *malloc(size_t);]]
local keep = {}
local function leak(i) keep[i] = ffi.C.malloc(100000) end
for i = 1, 1000 do leak(i) end
"""


@pytest.mark.needs_program("luajit")
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_luajits_traces(oomrec, tmp_path, mode):
    """They run in the frame of its interpreter, which is in assembly."""
    (tmp_path / "leaks.lua").write_text(LUA)
    run = oomrec("run", "--mode", mode, "--dump-at-exit", "--", "luajit", "leaks.lua")
    shown = oomrec.json("show", run.only_bundle())
    assert_none_is_cut(shown)
    assert shown["holders"][0]["bytes"] > 90_000_000
    assert "lua_pcall" in first(shown) and "main" in first(shown), first(shown)


# --- Names ----------------------------------------------------------------------------------------


def lines(holder: dict) -> list[str]:
    return [f"{frame['file']}:{frame['line']} {frame['function']}" for frame in holder["stack"]]


def map_of(shown: dict) -> Path:
    return Path(f"/tmp/perf-{shown['process']['pid']}.map")


# A function of a size and a function: calls the second with the first.
CALLS_MALLOC = {
    # sub $8, %rsp; call *%rsi; add $8, %rsp; ret
    "x86_64": "4883ec08ffd64883c408c3",
    # stp x29, x30, [sp, -16]!; mov x29, sp; blr x1; ldp x29, x30, [sp], 16; ret
    "aarch64": "fd7bbfa9fd03009120003fd6fd7bc1a8c0035fd6",
}[platform.machine()]

KEPT = ["/srv/app/cache.js:12 keepImage", "/srv/app/my server.js:3 get onRequest"]


@pytest.mark.parametrize("how", ["at exit", "kill"])
def test_functions_in_the_map_have_names(oomrec, victim, how):
    """Also when it is gone: the bundle has them. Of lines that overlap, the last is right."""
    arguments = ["kill"] if how == "kill" else []
    run = oomrec("run", "--dump-at-exit", "--", victim("generated_code"), *arguments)
    bundle = run.only_bundle()
    map_of(oomrec.json("show", bundle)).unlink()
    shown = oomrec.json("show", "--at", "peak", bundle)
    holder = shown["holders"][0]
    assert holder["bytes"] >= 80 << 20
    assert [line for line in lines(holder) if ".js" in line] == KEPT
    assert not any(frame["guessed"] for frame in holder["stack"] if ".js" in (frame["file"] or ""))
    assert "cache.js:12 keepImage" in oomrec("show", bundle).stdout
    folded = oomrec("export", "--format", "folded", "--at", "peak", bundle).stdout
    assert "get onRequest" in folded and "was_here_before" not in folded
    if how == "at exit":
        assert ", cache.js:12 keepImage" in run.stderr


def test_a_running_process_is_named_by_its_map(oomrec, tmp_path):
    script = (
        "import ctypes, mmap, os, sys, time\n"
        "code = mmap.mmap(-1, 4096, prot=7)\n"
        f"code.write(bytes.fromhex('{CALLS_MALLOC}'))\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(code))\n"
        "with open(f'/tmp/perf-{os.getpid()}.map', 'w') as f: f.write(f'{at:x} 40 JS:^hold /srv/held.js:7:1\\n')\n"
        "malloc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value\n"
        "call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(at)\n"
        "kept = [call(50 << 20, malloc)]\n"
        "ctypes.memset(kept[0], 1, 50 << 20)\n"
        "print('holds', flush=True)\n"
        "time.sleep(60)\n"
    )
    (tmp_path / "holds_generated.py").write_text(script)
    oomrec.start("run", "--", sys.executable, "holds_generated.py").once("holds")
    shown = oomrec.json("show", "holds_generated.py")
    map_of(shown).unlink()
    assert "/srv/held.js:7 hold" in lines(shown["holders"][0])


NODE = """
const cache = new Map();
function keepImage(i) { const image = Buffer.alloc(512 * 1024, 1); cache.set(i, image); }
function onRequest(i) { for (let k = 0; k < 4; k++) keepImage(4 * i + k); }
let i = 0;
const timer = setInterval(() => { onRequest(i++); if (i == 40) { clearInterval(timer); process.kill(process.pid, "SIGKILL"); } }, 1);
"""


@pytest.mark.needs_program("node")
def test_a_function_of_javascript_holds_its_buffers(oomrec, tmp_path):
    """With --jit-names, whatever has compiled it so far: in one line."""
    (tmp_path / "serves.js").write_text(NODE)
    run = oomrec("run", "--jit-names", "--", "node", "serves.js", exits=128 + 9)
    shown = oomrec.json("show", run.only_bundle())
    map_of(shown).unlink()
    assert_none_is_cut(shown)
    of_function = sum(
        holder["bytes"]
        for holder in shown["holders"]
        if any(line.endswith("serves.js:3 keepImage") for line in lines(holder))
    )
    assert of_function >= 0.95 * 160 * 512 * 1024, [
        lines(holder) for holder in shown["holders"][:3]
    ]
    largest = next(holder for holder in shown["holders"] if "keepImage" in str(lines(holder)))
    assert largest["bytes"] >= 0.7 * of_function
    own = [line.rsplit("/", 1)[-1] for line in lines(largest) if "serves.js" in line]
    assert own[:2] == ["serves.js:3 keepImage", "serves.js:4 onRequest"], own


@pytest.mark.needs_program("node")
def test_without_names_the_stack_is_whole(oomrec, tmp_path):
    (tmp_path / "serves.js").write_text(NODE)
    run = oomrec("run", "--", "node", "serves.js")
    shown = oomrec.json("show", run.only_bundle())
    assert_none_is_cut(shown)
    assert "node::Start" in str(first(shown)) and not map_of(shown).exists()


# What is lent is given back at once, and must be nobody's.
JAVA = """
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.*;

class Keeps {
  static final int BLOCK = 256 << 10;
  static final List<Object> kept = new ArrayList<>();
  static sun.misc.Unsafe unsafe;
  interface Way { void keep(); }
  static void keepBuffer() {
    kept.add(ByteBuffer.allocateDirect(BLOCK));
  }
  static void keepUnsafe() {
    kept.add(unsafe.allocateMemory(BLOCK));
  }
  static void lend() {
    unsafe.freeMemory(unsafe.allocateMemory(BLOCK));
  }
  static void serve(Way way) { way.keep(); lend(); }

  public static void main(String[] words) throws Exception {
    Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
    field.setAccessible(true);
    unsafe = (sun.misc.Unsafe) field.get(null);
    Way way = words[0].equals("buffer") ? Keeps::keepBuffer : Keeps::keepUnsafe;
    Thread thread = new Thread(() -> { for (int i = 0; i < 400; ++i) serve(way); });
    thread.start();
    thread.join();
    new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor();
  }
}
"""
KEPT_BY_JAVA = 400 * (256 << 10)


def java_line(function: str, text: str) -> str:
    number = next(n for n, line in enumerate(JAVA.splitlines(), 1) if text in line)
    return f"Keeps.java:{number} Keeps.{function}"


def killed_java(oomrec, tmp_path, java: list[str], way: str) -> dict:
    (tmp_path / "Keeps.java").write_text(JAVA)
    command = ["java", *java, "Keeps.java", way]
    run = oomrec("run", "--mode", "exact", "--", *command, exits=128 + 9)
    return oomrec.json("show", run.only_bundle())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not tried there")
@pytest.mark.needs_program("java")
@pytest.mark.parametrize("way", ["buffer", "unsafe"])
@pytest.mark.parametrize("java", [[], ["-Xint"], ["-XX:TieredStopAtLevel=1", "-Xbatch"]])
def test_a_line_of_java_holds_direct_memory(oomrec, tmp_path, java, way):
    """After a SIGKILL, interpreted or compiled, by the line that asked for it."""
    shown = killed_java(oomrec, tmp_path, java, way)
    assert_none_is_cut(shown)
    assert not map_of(shown).exists()
    wanted = {
        "buffer": java_line("keepBuffer", "add(ByteBuffer"),
        "unsafe": java_line("keepUnsafe", "add(unsafe"),
    }[way]
    held = [holder for holder in shown["holders"] if wanted in lines(holder)]
    assert 0.98 * KEPT_BY_JAVA <= sum(holder["bytes"] for holder in held) <= 1.02 * KEPT_BY_JAVA
    (largest,) = held
    assert java_line("serve", "way.keep(); lend()") in lines(largest)
    assert "JavaCalls::call_helper" in str(lines(largest)) and "start_thread" in str(lines(largest))
    assert not any(frame["guessed"] for frame in largest["stack"])
    assert not any("Keeps.lend" in str(lines(holder)) for holder in shown["holders"])
