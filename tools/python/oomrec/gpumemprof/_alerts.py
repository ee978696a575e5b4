"""Which samples are alarming: a tracker's thresholds, and what is said when one of them is passed."""

from __future__ import annotations

import time
from typing import Any, Iterator, Mapping, NamedTuple

from .device_collectors import DeviceMemorySample
from .utils import format_bytes

AGAIN_S = 1.0  # between two alerts while a threshold stays passed


class Alert(NamedTuple):
    """`lasts`: it is of a state that may stay for long, not of what happened in one tick."""

    kind: str  # "warning" or "critical"
    words: str
    metadata: dict[str, Any]
    lasts: bool = True


def default_thresholds() -> dict[str, float]:
    """Percent of the device in use; growth in one tick, in bytes; share of reserved memory unused."""
    return {
        "memory_warning_percent": 80.0,
        "memory_critical_percent": 95.0,
        "memory_leak_threshold": 100.0 * 1024 * 1024,
        "fragmentation_threshold": 0.3,
    }


def percent_used(sample: DeviceMemorySample) -> float:
    """Of the device, by all who use it, 0 to 100."""
    return 100.0 * sample.used_bytes / sample.total_bytes if sample.total_bytes else 0.0


def alerts_of(
    sample: DeviceMemorySample, change: int, thresholds: Mapping[str, float]
) -> Iterator[Alert]:
    """The thresholds that a sample passes; `change`: bytes since the sample before."""
    percent = percent_used(sample)
    for kind in ("critical", "warning"):
        if percent >= thresholds[f"memory_{kind}_percent"]:
            words = f"{kind.upper()}: Memory usage at {percent:.1f}%"
            yield Alert(kind, words, {"usage_percent": percent})
            break
    if change > thresholds["memory_leak_threshold"]:
        words = f"Large allocation detected: {format_bytes(change)}"
        yield Alert("warning", words, {"large_allocation": True}, lasts=False)
    if sample.reserved_bytes > 0:
        unused = (sample.reserved_bytes - sample.allocated_bytes) / sample.reserved_bytes
        if unused > thresholds["fragmentation_threshold"]:
            yield Alert("warning", f"High fragmentation: {unused:.1%}", {"fragmentation": unused})


class Pace:
    """Lets an alert that lasts through once a second, not once a sample."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def lets_through(self, alert: Alert) -> bool:
        """Whether it is to be told now."""
        if not alert.lasts:
            return True
        name = f"{alert.kind} {next(iter(alert.metadata))}"
        now = time.monotonic()
        if now - self._last.get(name, -AGAIN_S) < AGAIN_S:
            return False
        self._last[name] = now
        return True

    def forget(self) -> None:
        """As if nothing had been told yet."""
        self._last.clear()
