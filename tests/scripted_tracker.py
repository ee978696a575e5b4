"""A tracker with scripted samples, which a test advances by hand."""

from __future__ import annotations

from oomrec.gpumemprof import DeviceMemorySample, MemoryTracker
from oomrec.gpumemprof.device_collectors import DeviceMemoryCollector

MIB = 1 << 20


class Scripted(DeviceMemoryCollector):
    """A device of 1,000 MiB with scripted samples: (allocated, reserved, used) in MiB."""

    device_id = 0

    def __init__(self, *samples):
        self.samples = list(samples)
        self.calls = []

    def name(self):
        return "cuda"

    def is_available(self):
        return True

    def sample(self):
        sample = self.samples[0]
        if isinstance(sample, Exception):
            raise sample
        allocated, reserved, used = (each * MIB for each in sample)
        return DeviceMemorySample(
            allocated, reserved, used, 1000 * MIB - used, 1000 * MIB, allocated, 0, 0
        )

    def empty_cache(self):
        self.calls.append("empty_cache")

    def synchronize(self):
        self.calls.append("synchronize")


class ScriptedTracker(MemoryTracker):
    """Its device is a collector."""

    _build_collector = staticmethod(lambda collector: collector)


def tracker_of(*samples, max_events=100, **options) -> MemoryTracker:
    """A started tracker that samples only by tick()."""
    tracker = ScriptedTracker(Scripted(*samples), 3600, max_events, **options)
    tracker.start_tracking()
    return tracker


def tick(tracker, times=1):
    for _ in range(times):
        if len(tracker.collector.samples) > 1:
            del tracker.collector.samples[0]
        tracker._tick()


def kinds(tracker) -> list:
    return [event.event_type for event in tracker.get_events()]
