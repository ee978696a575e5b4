"""Recordings for the report's page, made up: the container that `oomrec report` puts into the page,
written by itself, so that the browser's side is tested with any shape and size of data.

    python3 tests/report_data.py TEMPLATE OUT small|hostile|large|empty

TEMPLATE is the assembled page (build/tools/views/report/page/report.html).
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from array import array
from pathlib import Path

KINDS = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}
START_MS = 1_795_000_000_000.0
MIB = 2**20

NATIVE, PYTHON, NOTE = 0, 1, 2
INTERPRETER, ALLOCATOR, IMPORTS, OWN = 8, 32, 64, 128

COLUMNS = {
    "place_function": "u32", "place_file": "u32", "place_line": "u32", "place_module": "u32",
    "place_kind": "u8", "place_source": "u32", "place_excerpt": "u32",
    "excerpt_first": "u32", "excerpt_end": "u32", "excerpt_text": "u32", "node_parent": "u32", "node_place": "u32",
    "row_node": "u32", "row_space": "u8", "row_device": "u8", "row_group": "u16",
    "row_label": "u16", "row_process": "u16", "row_estimated": "u8",
    "row_live_bytes": "f64", "row_resident_bytes": "f64", "row_live_count": "f64", "row_peak_bytes": "f64",
    "row_peak_count": "f64", "row_total_bytes": "f64", "row_total_count": "f64",
    "row_temporary_count": "f64", "row_oldest_ms": "f64",
    "t_time": "f64", "t_rss": "f64", "c_time": "f64", "c_first": "u32", "c_row": "u32", "c_bytes": "f64",
    "c_full": "u8",
}  # fmt: skip


class Recording:
    """Builds one: location(…), stack([locations, outermost first]), row(stack, …), moment(…), checkpoint(…)."""

    def __init__(self, mode: str = "exact"):
        self.strings = [""]
        self.columns = {name: array(KINDS[kind]) for name, kind in COLUMNS.items()}
        self.types = dict(COLUMNS)
        self._string_ids = {"": 0}
        self._nodes: dict[tuple[int, int], int] = {}
        self.node(0, self.location(""))
        self.columns["c_first"].append(0)
        self.json = {
            "schema_version": 1,
            "meta": {
                "title": "train.py (pid 4242): soft_limit", "program": "python3", "arguments": ["python3", "train.py"],
                "pid": 4242, "ppid": 1, "cwd": "/srv/train", "executable": "/usr/bin/python3.11", "python": "3.11.2",
                "drivers": [], "host": "box", "user": None, "created_utc": "2026-11-18T11:07:40Z",
                "start_utc": "2026-11-18T11:06:40Z", "oomrec_version": "0", "mode": mode,
                "estimated": mode == "sampled", "redacted": False, "live": False, "weight": "requested", "moment": "end",
                "trigger": "soft_limit", "outcome": "exited 1",
                "outcome_sentence": "exited 1: the program exited with code 1",
                "bundle": "oom_cpu_20261118_110740_001",
                "recording": {"format": 5, "mode": mode, "interval_bytes": 524288, "events": 1, "dropped_events": 0,
                              "truncated_stacks": 0, "forgotten_stacks": 0,
                              "stacks": 1, "oomrec_version": "0"},
            },
            "verdict": None, "request": None, "crash": None, "child": None, "cgroup_account": None, "limit": None, "advice": [], "spaces": [],
            "resident_memory": None,
            "devices": [], "groups": [""], "labels": [""],
            "processes": [{"pid": 4242, "ppid": 1, "program": "python3", "relation": "self", "live_bytes": 0, "peak_bytes": 0,
                           "rss_bytes": 0, "outcome": "exited 1", "bundle": None}],
            "others": None, "objects": None, "modules": [], "environment": {},
            "notes": [], "fragmentation": None, "leaks": None, "limits": [], "marks": [],
            "refusals": [], "job": None,
        }  # fmt: skip
        for name, adds_up in [
            ("heap", True), ("map", True), ("cuda", True), ("torch", False)
        ]:  # fmt: skip
            figures = dict.fromkeys(
                ["live_bytes", "peak_bytes", "live_count", "allocated_bytes", "allocated_count"], 0
            )
            self.json["spaces"].append({"name": name, "adds_up": adds_up, **figures})

    def string(self, text: str) -> int:
        if text not in self._string_ids:
            self._string_ids[text] = len(self.strings)
            self.strings.append(text)
        return self._string_ids[text]

    def _append(self, prefix: str, **values) -> None:
        for name, value in values.items():
            self.columns[f"{prefix}_{name}"].append(value)

    def location(
        self, function: str, file: str = "", line: int = 0, module: str = "", kind: int = NATIVE, source: str = ""
    ) -> int:  # fmt: skip
        function, file, module, source = map(self.string, (function, file, module, source))
        self._append(
            "place",
            function=function,
            file=file,
            line=line,
            module=module,
            kind=kind,
            source=source,
        )
        return len(self.columns["place_kind"]) - 1

    def node(self, parent: int, location: int) -> int:
        if (parent, location) not in self._nodes:
            self._nodes[parent, location] = len(self.columns["node_parent"])
            self._append("node", parent=parent, place=location)
        return self._nodes[parent, location]

    def stack(self, locations: list[int]) -> int:
        node = 0
        for location in locations:
            node = self.node(node, location)
        return node

    def row(self, node: int, live: float, *, count: float = 1, total: float | None = None, total_count: float | None = None,
            peak: float | None = None, resident: float = -1, temporary: float = 0, space: int = 0, device: int = 0, group: int = 0,
            label: int = 0, process: int = 0) -> int:  # fmt: skip
        """Adds a holder. By default nothing of it was ever freed."""
        total = live if total is None else total
        total_count = count if total_count is None else total_count
        self._append("row", node=node, space=space, device=device, group=group, label=label, process=process,
                     estimated=int(self.json["meta"]["estimated"]), live_bytes=live, live_count=count, resident_bytes=resident,
                     peak_bytes=live if peak is None else peak, peak_count=max(count, 1), total_bytes=total,
                     total_count=total_count, temporary_count=temporary, oldest_ms=-1)  # fmt: skip
        figures = self.json["spaces"][space]
        for key, value in [("live_bytes", live), ("peak_bytes", live), ("live_count", count),
                           ("allocated_bytes", total), ("allocated_count", total_count)]:  # fmt: skip
            figures[key] += int(value)
        return len(self.columns["row_node"]) - 1

    def figure(self, name: str, value: float) -> None:
        """Appends to a column that depends on the recording: t_live_0, c_total_0, …"""
        self.types[name] = "f64"
        self.columns.setdefault(name, array("d")).append(value)

    def moment(
        self, second: float, rss: float, live: list[float], devices: list[tuple[float, float]] = ()
    ) -> None:
        self._append("t", time=START_MS + 1000 * second, rss=rss)
        for space, bytes in enumerate(live):
            self.figure(f"t_live_{space}", bytes)
        for device, (counted, used) in enumerate(devices):
            self.figure(f"t_device_{device}_counted", counted)
            self.figure(f"t_device_{device}_used", used)
            self.figure(f"t_device_{device}_torch_reserved", counted)
            self.figure(f"t_device_{device}_torch_allocated", counted / 2)

    def checkpoint(
        self, second: float, rows: list[tuple[int, float]], totals: list[float], full: bool = False
    ) -> None:
        """full: the checkpoint had no space for more rows."""
        self.columns["c_full"].append(full)
        self.columns["c_time"].append(START_MS + 1000 * second)
        for row, bytes in rows:
            self._append("c", row=row, bytes=bytes)
        self.columns["c_first"].append(len(self.columns["c_row"]))
        for space, bytes in enumerate(totals):
            self.figure(f"c_total_{space}", bytes)

    def described(self) -> dict:
        """The JSON text with the offsets of the arrays."""
        arrays, offset = {}, 0
        for name, column in self.columns.items():
            arrays[name] = {"type": self.types[name], "offset": offset, "length": len(column)}
            offset += padded(len(column) * column.itemsize)
        return {**self.json, "strings": self.strings, "arrays": arrays}

    def packed(self) -> bytes:
        text = json.dumps(self.described()).encode()
        parts = [
            struct.pack("<I", len(text)) + text,
            *(column.tobytes() for column in self.columns.values()),
        ]
        return zlib.compress(b"".join(part.ljust(padded(len(part)), b"\0") for part in parts), 6)


def padded(length: int) -> int:
    """An array begins at a multiple of 8."""
    return (length + 7) // 8 * 8


def page(
    template: str, recording: Recording, title: str = "oomrec", view: str = "", label: str = ""
) -> str:
    """The page for a recording, as `oomrec report` writes it."""
    values = {
        "OOMREC_TITLE": title,
        "OOMREC_VIEW": view,
        "OOMREC_LABEL": label,
        "OOMREC_DATA": base64.b64encode(recording.packed()).decode(),
    }
    for word, value in values.items():
        assert template.count(word) == 1, word
        template = template.replace(word, value)
    return template


def small() -> Recording:
    """A training loop that leaks its batches: Python over numpy over C, a device, marks, a failure."""
    made = Recording()
    libc, numpy = (
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/srv/lib/site-packages/numpy/core/_multiarray.so",
    )
    main = made.location("<module>", "/srv/train/train.py", 56, kind=PYTHON | OWN)
    train = made.location("main", "/srv/train/train.py", 48, kind=PYTHON | OWN)
    batch = made.location(
        "make_batch",
        "/srv/train/train.py",
        21,
        kind=PYTHON | OWN,
        source="    examples = random(size)  # <b>",
    )
    other_line = made.location("make_batch", "/srv/train/train.py", 22, kind=PYTHON | OWN)
    interpreter = made.location("_PyEval_Vector", "", 0, "/usr/bin/python3.11", INTERPRETER)
    frozen = made.location(
        "_find_and_load", "<frozen importlib._bootstrap>", 1027, kind=PYTHON | IMPORTS
    )
    empty = made.location("PyArray_NewFromDescr", "", 0, numpy)
    malloc = made.location("malloc", "", 0, libc, ALLOCATOR)
    ones = made.location("ones", "/srv/lib/site-packages/numpy/numeric.py", 191, kind=PYTHON)
    walk = made.location("walk", "/srv/train/walk.py", 7, kind=PYTHON | OWN)
    pool = made.location(
        "at::empty_cuda", "", 0, "/srv/lib/site-packages/torch/lib/libtorch_cuda.so"
    )
    worker = made.location("worker_loop", "", 0, "/srv/train/libwork.so", OWN)

    made.json["groups"] = ["", "python", "worker"]
    made.json["labels"] = ["", "epoch 1", "epoch 2"]
    made.json["devices"] = [
        {"device": "cuda:0", "name": "A GPU", "held_bytes": 300 * MIB, "total_bytes": 1024 * MIB}
    ]
    start = [main, interpreter, train, interpreter]
    kept = made.row(
        made.stack([*start, batch, interpreter, empty, malloc]), 384 * MIB, count=12, label=1
    )
    made.row(made.stack([*start, other_line, interpreter, ones, interpreter, empty, malloc]), 16 * MIB, count=4,
             total=64 * MIB, total_count=16, peak=32 * MIB, temporary=8, label=2, group=1)  # fmt: skip
    made.row(
        made.stack([main, frozen, interpreter, malloc]),
        3 * MIB,
        count=300,
        total=5 * MIB,
        total_count=900,
    )
    made.row(
        made.stack([main, walk, interpreter, walk, interpreter, walk, malloc]), 7 * MIB, count=7
    )
    made.row(made.stack([worker, malloc]), 40 * MIB, count=10, group=2, space=1)
    held = made.row(made.stack([*start, pool]), 300 * MIB, count=3, space=2, device=1, group=1)
    made.row(made.stack([*start, pool]), 120 * MIB, count=30, space=3, device=1, group=1)

    limit = 512 * MIB
    for i in range(61):
        heap = min(410, 10 + 6.7 * i) * MIB
        made.moment(
            i,
            heap + 60 * MIB,
            [heap, 40 * MIB, 0, 0],
            [(300 * MIB * (i > 20), 420 * MIB * (i > 20))],
        )
    for i in range(0, 61, 4):
        rows = [(kept, 384 * MIB * i / 60)] + ([(held, 300 * MIB)] if i > 20 else [])
        made.checkpoint(i, rows, [(10 + 6.7 * i) * MIB, 40 * MIB, 300 * MIB * (i > 20), 0])
    made.json["limits"] = [
        {"name": "--limit", "bytes": limit, "device": None},
        {"name": "RAM", "bytes": 64 * 1024 * MIB, "device": None},
        {"name": "--limit-gpu cuda:0", "bytes": 512 * MIB, "device": "cuda:0"},
    ]
    made.json["marks"] = [
        {"time_ms": START_MS + 1000 * second, "text": f"epoch {n}"}
        for n, second in enumerate([5, 25, 45], 1)
    ]
    made.json["refusals"] = [
        {
            "time_ms": START_MS + 60_000,
            "bytes": 32 * MIB,
            "api": "malloc",
            "space": "heap",
            "stack": 0,
        }
    ]
    plain = {"inlined": False, "guessed": False}
    frames = [
        {"kind": "native", "function": "malloc", "file": None, "line": None, "module": libc, "build_id": "ab", "offset": 1,
         **plain},
        {"kind": "python", "function": "make_batch", "file": "/srv/train/train.py", "line": 21, "module": None,
         "build_id": None, "offset": None, **plain},
    ]  # fmt: skip
    made.json["request"] = {
        "api": "malloc", "size": 32 * MIB, "space": "heap", "device": None, "error": "ENOMEM", "repeats": 1,
        "aftershocks": {"count": 2, "last_after_ms": 40}, "thread": {"tid": 4242, "name": "python3"}, "stack": frames,
    }  # fmt: skip
    made.json["limit"] = {"kind": "soft", "bytes": limit, "used": 490 * MIB}
    made.json["verdict"] = {
        "code": "soft_limit",
        "certainty": "proven",
        "summary": "numpy asked malloc for 32.0 MiB and was refused: the soft limit of 512.0 MiB is reached",
        "evidence": ["live 490.0 MiB + request 32.0 MiB > the soft limit 512.0 MiB"],
        "is_memory": True,
    }
    made.json["advice"] = [
        {
            "rule": "grows_each_epoch",
            "text": "Batches are kept in a list that grows each epoch.",
            "row": kept,
        }
    ]
    made.json["environment"] = {"kernel": "6.1", "ram_bytes": 64 * 1024 * MIB, "argv": ["python3", "train.py"],
                                "pressure": None, "versions": {"glibc": "2.36"}}  # fmt: skip
    made.json["modules"] = [{"path": libc, "build_id": "abc"}]
    made.json["notes"] = ["small Python objects appear as arenas"]
    made.json["objects"] = {
        "objects": [
            {"bytes": 320 * MIB, "type": "torch.Tensor", "shape": [10, 2**23], "dtype": "torch.float32", "device": "cpu",
             "views": 1, "address": 4096, "grad_fn": None,
             "stack": ["libtorch_cpu.so THPVariable_ones", "train.py:21 make_batch", "train.py:56 <module>"],
             "referrers": [{"kind": "item", "name": "history[3]", "container": "list", "where": "train.py:40 train",
                            "is_cycle": True}]},
            {"bytes": 8 * MIB, "type": "numpy.ndarray", "shape": [], "dtype": "float64", "device": "cpu", "views": 2,
             "address": 8192, "grad_fn": None, "stack": [], "referrers": []},
        ],
        "count": 70, "total_bytes": 400 * MIB, "complete": False,
    }  # fmt: skip
    made.json["leaks"] = {
        "schema_version": 1, "detected": True, "severity": "high", "memory_increase_mb": 384.0, "time_window_seconds": 60.0,
        "suggestions": ["Look at make_batch."], "checkpoints": 16, "checkpoints_needed": 8, "mode": "exact", "estimated": False,
        "limit": {"name": "--limit", "bytes": limit, "reached_in_seconds": 5.0},
        "leaks": [{"space": "heap", "device": None, "estimated": False, "growth_bytes": 384 * MIB, "bytes_per_second": 6.4 * MIB,
                   "window_seconds": 60.0, "r_squared": 0.998, "steadiness": 1.0, "confidence": 0.97, "live_bytes": 384 * MIB,
                   "live_count": 12, "survivor_share": 1.0, "oldest_seconds": 58.0, "stacks": 1, "suggestion": "", "stack": [frames[0], {**frames[1], "function": "ones", "file": "/srv/lib/site-packages/numpy/numeric.py"}, frames[1]]}],
        "unsteady": None, "resident_growth": None, "resident_memory": None, "devices": [],
        "processes": [{"pid": 4242, "rank": None, "program": "python3", "bundle": None, "checkpoints": 16, "detected": True,
                       "leaks": 1, "growth_bytes": 384 * MIB, "bytes_per_second": 6.4 * MIB}],
    }  # fmt: skip
    made.json["fragmentation"] = {
        "schema_version": 1, "mode": "exact", "rss_bytes": 470 * MIB,
        "heap": {"allocator": "glibc", "live_bytes": 410 * MIB, "live_count": 323,
                 "areas": {"count": 3, "held_bytes": 470 * MIB, "arenas_bytes": 20 * MIB, "resident_bytes": 455 * MIB,
                           "live_bytes": 410 * MIB, "free_bytes": 60 * MIB, "free_share": 0.128,
                           "free_resident_bytes": 45 * MIB},
                 "free_runs": {"bytes": 60 * MIB, "count": 40, "largest_bytes": 8 * MIB, "page_bytes": 50 * MIB,
                               "sizes": [{"from": 16, "to": 4096, "count": 30, "bytes": MIB},
                                         {"from": 4096, "to": 2**24, "count": 10, "bytes": 59 * MIB}]}},
        "map": {"live_bytes": 40 * MIB, "live_count": 10, "reserved_bytes": 0, "resident_bytes": 38 * MIB, "anonymous_bytes": None,
                "huge_page_bytes": None, "swapped_bytes": 0},
        "devices": [], "advice": [{"rule": "malloc_trim", "text": "Give free pages back with malloc_trim."}],
    }  # fmt: skip
    return made


# Attacks that must stay plain text everywhere.
HOSTILE = [
    "<script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "\"'><svg onload=window.broken=1>",
    "\u001b[31mred\u001b]0;title\u0007",
    "\u202egnp.exe \u200b\u2066",
    "javascript:window.broken=1",
    "&lt;b&gt;&amp;",
    "__proto__",
    "constructor",
    "{{x}} ${window.broken=1} `x`",
    "not UTF-8: \ufffd",
    "漢字" * 200,
    "x" * MIB,
]


def hostile() -> Recording:
    """The small recording with a hostile text in place of every text."""
    made = Recording("sampled")
    for i, text in enumerate(HOSTILE):
        location = made.location(
            text, f"/srv/{text}", i, f"/lib/{text}.so", PYTHON | OWN if i % 2 else NATIVE, text
        )
        outer = made.location(text + "outer", "", 0, text, NOTE if i % 3 == 0 else NATIVE)
        made.json["groups"].append(text)
        made.json["labels"].append(text)
        made.json["processes"].append({"pid": i, "name": text, "program": text, text: text})
        row = made.row(
            made.stack([outer, location]),
            (i + 1) * MIB,
            group=i + 1,
            label=i + 1,
            process=i + 1,
            device=1,
            space=2,
        )
        made.json["advice"].append({"rule": text, "text": text, "row": row})
        made.checkpoint(i, [(row, (i + 1) * MIB)], [0, 0, (i + 2) * MIB, 0])
        made.moment(i, (i + 3) * MIB, [0, 0, (i + 2) * MIB, 0], [(i * MIB, (i + 1) * MIB)])
        made.json["marks"].append({"time_ms": START_MS + 1000 * i, "text": text})
        made.json["refusals"].append(
            {"time_ms": START_MS + 1000 * i, "bytes": MIB, "api": text, "stack": 0}
        )
        made.json["limits"].append({"name": text, "bytes": (i + 1) * MIB, "device": None})
        made.json["modules"].append({"path": text, "build_id": text})
        made.json["notes"].append(text)
    text = "".join(HOSTILE[:-2])
    made.json["devices"] = [{"device": text, "name": text, "uuid": text}]
    for key in ["title", "program", "host", "user", "trigger", "outcome", "oomrec_version"]:
        made.json["meta"][key] = text
    made.json["meta"]["arguments"] = HOSTILE
    made.json["verdict"] = {
        "code": text,
        "certainty": text,
        "summary": text,
        "evidence": HOSTILE,
        "is_memory": True,
    }
    frame = {
        "kind": "native",
        "function": text,
        "file": text,
        "line": 1,
        "module": text,
        "offset": 1,
    }
    made.json["request"] = {"api": text, "size": 1, "space": text, "device": {"name": text}, "error": text,
                            "repeats": 2, "aftershocks": {"count": 1, "last_after_ms": None},
                            "thread": {"tid": 1, "name": text}, "stack": [frame]}  # fmt: skip
    made.json["limit"] = {"kind": text, "bytes": 5, "used": 4}
    made.json["objects"] = {
        "objects": [{"bytes": 1, "type": text, "shape": [1], "dtype": text, "device": text, "views": 1, "address": 1,
                     "grad_fn": text, "stack": HOSTILE,
                     "referrers": [{"kind": "item", "name": name, "container": name, "where": name, "is_cycle": False}
                                   for name in HOSTILE]}],
        "count": 1, "total_bytes": 1, "complete": True,
    }  # fmt: skip
    anything = {name: {name: [name, {name: name}]} for name in HOSTILE}
    made.json["environment"] = anything
    leak = {
        **small().json["leaks"]["leaks"][0],
        "space": text,
        "device": text,
        "suggestion": text,
        "stack": [frame],
    }
    made.json["leaks"] = {**small().json["leaks"], "severity": text, "suggestions": HOSTILE, "leaks": [leak],
                          "limit": {"name": text, "bytes": 1, "reached_in_seconds": 1}, "devices": [anything],
                          "processes": [anything]}  # fmt: skip
    made.json["fragmentation"] = {"heap": {"allocator": text, "live_bytes": 1, "areas": None, "free_runs": None},
                                  "map": anything, "devices": [anything], "advice": [{"rule": text, "text": text}]}  # fmt: skip
    return made


def large(stacks: int = 100_000) -> Recording:
    """This many stacks, 12 to 40 frames deep, over 20,000 locations, with more than twice as many nodes."""
    made = Recording()
    locations = [
        made.location(f"function_{i}", f"/srv/lib/site-packages/package_{i % 40}/file_{i % 900}.py", i % 3000 + 1,
                   f"/srv/lib/lib_{i % 60}.so", PYTHON if i % 3 == 0 else OWN if i % 3 == 1 else NATIVE)
        for i in range(20_000)
    ]  # fmt: skip
    state = 12345
    for i in range(stacks):
        # Neighbouring stacks share callers, as in a program. The last two frames are unique.
        depth = 12 + i % 29
        stack = [
            locations[(level * 97 + (i >> max(5, 17 - level)) * 31) % 20_000]
            for level in range(depth - 2)
        ]
        state = (state * 1103515245 + 12345) % 2**31
        stack += [locations[(state + k * 7919 + i) % 20_000] for k in range(2)]
        bytes = 1000 + state % 100_000
        made.row(
            made.stack(stack),
            bytes,
            count=1 + i % 5,
            total=2 * bytes,
            total_count=10,
            group=0,
            space=i % 2,
        )
    for second in range(256):
        made.moment(second, (second + 1) * 10 * MIB, [(second + 1) * 8 * MIB, MIB, 0, 0])
        rows = [((k * 390 + second) % stacks, (second + 1) * 1000.0 * k) for k in range(1, 257)]
        made.checkpoint(second, rows, [(second + 1) * 64 * MIB, 64 * MIB, 0, 0])
    return made


def empty() -> Recording:
    """A recording of a program that ended at once."""
    return Recording()


MAKERS = {"small": small, "hostile": hostile, "large": large, "empty": empty}

if __name__ == "__main__":
    template, out, name = sys.argv[1:]
    Path(out).write_text(page(Path(template).read_text(), MAKERS[name]()))
