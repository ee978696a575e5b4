"""Recorder: the flight recorder without a tracker, in a service's request handler."""

import json
import sys
from pathlib import Path

from gpumemprof.oom_flight_recorder import (
    OOMFlightRecorder,
    OOMFlightRecorderConfig,
    classify_oom_exception,
)

backend = sys.argv[1].partition(":")[0]
config = OOMFlightRecorderConfig(
    enabled=True, dump_dir="flights", buffer_size=4, max_dumps=2, max_total_mb=0
)
recorder = OOMFlightRecorder(config)


def handle(number):
    recorder.record_event({"timestamp": number, "event_type": "request", "number": number})
    if number % 3 == 2:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")


dumps = []
for number in range(9):
    try:
        handle(number)
    except RuntimeError as error:
        found = classify_oom_exception(error)
        dumps.append(
            recorder.dump(
                reason=found.reason,
                exception=error,
                context=f"request {number}",
                backend=backend,
                metadata={"number": number},
            )
        )

print("dumps:", len(dumps), len(set(dumps)))
print("left:", sum(Path(dump).exists() for dump in dumps), Path(dumps[-1]).exists())
print("kept:", [event["number"] for event in recorder.snapshot_events()])


def load(name):
    return json.loads((Path(dumps[-1]) / name).read_text())


manifest, metadata = load("manifest.json"), load("metadata.json")
print("named:", manifest["bundle_name"] == Path(dumps[-1]).name, manifest["schema_version"])
print("files:", all((Path(dumps[-1]) / name).exists() for name in manifest["files"]))
print("exception:", metadata["exception_module"], metadata["exception_type"], metadata["context"])
print("message:", metadata["exception_message"])
print("number:", metadata["custom_metadata"]["number"])
print("events:", [event["number"] for event in load("events.json") if "number" in event])
environment = load("environment.json")
print("system:", environment["system"]["platform"], environment["system"]["mps_available"])
print("pid:", type(environment["pid"]).__name__, bool(environment["cwd"]))
off = OOMFlightRecorder(OOMFlightRecorderConfig())
print("off:", off.dump(reason="x", exception=MemoryError(), context=None, backend=backend))
