"""A tracker's thresholds, and the alerts for samples that exceed them."""

from __future__ import annotations

import json
import pkgutil
import time
from typing import Any, Iterator, Mapping, NamedTuple

from .device_collectors import DeviceMemorySample
from .utils import format_bytes

REPEAT_S = 1.0  # between two alerts while a threshold stays exceeded


class Alert(NamedTuple):
    """An exceeded threshold. `lasts`: it is a state that may persist, not an event of one tick."""

    kind: str  # "warning" or "critical"
    text: str
    metadata: dict[str, Any]
    lasts: bool = True


def default_thresholds() -> dict[str, float]:
    """Those of alert_thresholds.json, which `oomrec track` has, too."""
    table = json.loads(pkgutil.get_data(__package__, "alert_thresholds.json") or b"")
    return {name: value for name, value in table.items() if name != "about"}


def percent_used(sample: DeviceMemorySample) -> float:
    """The share of the device in use by all processes, 0 to 100."""
    return 100.0 * sample.used_bytes / sample.total_bytes if sample.total_bytes else 0.0


def alerts_of(
    sample: DeviceMemorySample, change: int, thresholds: Mapping[str, float]
) -> Iterator[Alert]:
    """The thresholds that a sample exceeds; `change`: bytes since the previous sample."""
    percent = percent_used(sample)
    for kind in ("critical", "warning"):
        if percent >= thresholds[f"memory_{kind}_percent"]:
            text = f"{kind.upper()}: Memory usage at {percent:.1f}%"
            yield Alert(kind, text, {"usage_percent": percent})
            break
    if change > thresholds["memory_leak_threshold"]:
        text = f"Large allocation detected: {format_bytes(change)}"
        yield Alert("warning", text, {"large_allocation": True}, lasts=False)
    if sample.reserved_bytes > 0:
        unused = (sample.reserved_bytes - sample.allocated_bytes) / sample.reserved_bytes
        if unused > thresholds["fragmentation_threshold"]:
            yield Alert("warning", f"High fragmentation: {unused:.1%}", {"fragmentation": unused})


class RateLimit:
    """Admits a lasting alert once a second instead of once a sample."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def admits(self, alert: Alert) -> bool:
        """Whether to report the alert now."""
        if not alert.lasts:
            return True
        name = f"{alert.kind} {next(iter(alert.metadata))}"
        now = time.monotonic()
        if now - self._last.get(name, -REPEAT_S) < REPEAT_S:
            return False
        self._last[name] = now
        return True

    def reset(self) -> None:
        """Forgets all alerts, so that the next one is reported at once."""
        self._last.clear()
