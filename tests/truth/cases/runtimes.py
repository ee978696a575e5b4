"""A runtime's own limit ends the program: no request to the system was refused."""

from __future__ import annotations

from typing import Any

from truth.case import ABORTED, Case, died, innocent, quiet

# The bundle may say less; a runtime that ends itself with an exit code leaves none.
HONEST = ("unknown", "nothing", "exited", "exception")
NODE_HEAP = "const a = []; for (;;) a.push({ row: a.length, text: 'x'.repeat(50) + a.length })"
PY_MEMORY_ERROR = "held = bytearray(b'x') * (24 << 20)\nx = [0] * 2**61"


def runtime(name: str, story: str, words: list[str], *codes: str, **more: Any) -> Case:
    truth = died(*(codes or ("runtime_limit",)), unsure=more.pop("unsure", HONEST))
    return Case(name, "runtimes", story, words, truth, **more)


CASES = [
    runtime("node_heap", "V8's heap limit: abort", ["node", "--max-old-space-size=30", "-e",
            NODE_HEAP], needs=["node"], ends=ABORTED, unsure=["unknown"], short=True),
    runtime("node_semi", "V8's heap limit, reached by one string",
            ["node", "--max-old-space-size=20", "-e",
             "let a = []; for (;;) a.push(new Array(10000).fill(a.length + 0.5))"],
            needs=["node"], ends=ABORTED, unsure=["unknown"]),
    Case("node_abort", "runtimes", "node --abort-on-uncaught-exception: not memory",
         ["node", "--abort-on-uncaught-exception", "-e", "throw new Error('bug')"],
         quiet("crashed", unsure=["unknown"]), needs=["node"], short=True),
    Case("node_abort_call", "runtimes", "process.abort(): not memory",
         ["node", "-e", "const b = Buffer.alloc(24 << 20, 1); process.abort()"],
         innocent("crashed"), needs=["node"], ends=ABORTED),
    Case("node_exit", "runtimes", "an uncaught Error: not memory",
         ["node", "-e", "throw new Error('bug')"], quiet("exited"), needs=["node"], ends="exit 1"),
    runtime("java_heap", "OutOfMemoryError: Java heap space, uncaught",
            ["java", "-Xmx40m", "-XX:+UseSerialGC", "@Grow.java", "heap"], needs=["java"],
            ends="exit 1"),
    runtime("java_heap_exit", "-XX:+ExitOnOutOfMemoryError", ["java", "-Xmx40m",
            "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "@Grow.java", "heap"],
            needs=["java"], ends="exit 3", short=True),
    runtime("java_heap_crash", "-XX:+CrashOnOutOfMemoryError", ["java", "-Xmx40m",
            "-XX:+UseSerialGC", "-XX:+CrashOnOutOfMemoryError", "@Grow.java", "heap"],
            needs=["java"], ends=ABORTED, unsure=["unknown"]),
    runtime("java_direct", "direct memory is used up", ["java", "-Xmx40m",
            "-XX:MaxDirectMemorySize=32m", "-XX:+UseSerialGC", "@Grow.java", "direct"],
            needs=["java"], ends="exit 1"),
    Case("java_caught", "runtimes", "an OutOfMemoryError is caught; exit 0",
         ["java", "-Xmx40m", "-XX:+UseSerialGC", "@Grow.java", "caught"],
         quiet("runtime_limit"), needs=["java"], ends="exit 0"),
    Case("java_exit", "runtimes", "System.exit(7): not memory",
         ["java", "-Xmx40m", "-XX:+UseSerialGC", "@Grow.java", "exit"], quiet("exited"),
         needs=["java"], ends="exit 7"),
    Case("java_exception", "runtimes", "an uncaught exception: not memory",
         ["java", "-Xmx40m", "-XX:+UseSerialGC", "@Grow.java", "exception"], quiet("exited"),
         needs=["java"], ends="exit 1"),
    runtime("php_limit", "PHP's memory_limit", ["php", "-d", "memory_limit=20M", "-r",
            "$a = []; while (true) $a[] = str_repeat('x', 100000);"], needs=["php"],
            ends="exit 255"),
    Case("php_error", "runtimes", "PHP's uncaught exception: not memory",
         ["php", "-r", "throw new Exception('bug');"], quiet("exited"), needs=["php"],
         ends="exit 255"),
    Case("php_own_words", "runtimes", "a script's own error has the words of the memory limit",
         ["php", "-d", "memory_limit=64M", "-r",
          "trigger_error('Allowed memory size of 67108864 bytes exhausted (tried to allocate "
          "4096 bytes)', E_USER_ERROR);"], quiet("exited"), needs=["php"], ends="exit 255"),
    Case("ruby_error", "runtimes", "Ruby's uncaught exception: not memory",
         ["ruby", "-e", "raise 'bug'"], quiet("exited"), needs=["ruby"], ends="exit 1"),
    *(
        runtime(f"memory_error_{version}", f"Python {version}: MemoryError without a request",
                [f"@python{version}", "-c", PY_MEMORY_ERROR], "exception", "runtime_limit",
                "request_too_large", unsure=["unknown"], ends="exit 1", short=version == "3.12")
        for version in ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
    ),
    Case("memory_error_caught", "runtimes", "a MemoryError without a request is caught; exit 0",
         ["@python3.12", "-c", "try:\n  [0] * 2**61\nexcept MemoryError:\n  pass"],
         quiet("exception"), ends="exit 0"),
    Case("memory_error_raised", "runtimes", "a program raises MemoryError itself: a claim",
         ["@python3.11", "-c", "h = bytearray(b'x') * (24 << 20)\nraise MemoryError('no rows')"],
         died("exception", "nothing"), ends="exit 1"),
    Case("value_error", "runtimes", "an uncaught ValueError: not memory",
         ["@python3.12", "-c", "h = bytearray(b'x') * (24 << 20)\nint('x')"], quiet("exited"),
         ends="exit 1"),
    Case("lua_limit", "runtimes", "Lua's own check: resulting string too large",
         ["lua5.4", "-e", "local s = string.rep('x', 1 << 46)"], quiet("runtime_limit"),
         needs=["lua5.4"], ends="exit 1"),
]  # fmt: skip
