"""A tracker's latest events: stores, selects and exports them.

Alert callbacks run in the thread that took the sample, without a lock held.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import Any, Callable

from ._events import ALERT_TYPES, TrackingEvent, as_telemetry, selected, timeline
from .telemetry import SCHEMA_VERSION_V2, write_telemetry_events

logger = logging.getLogger(__name__)

AlertCallback = Callable[[TrackingEvent], Any]


class EventLog:
    """Keeps `max_events` events."""

    sampling_interval: float
    collector_capabilities: dict[str, Any]

    def __init__(self, max_events: int) -> None:
        self.max_events = max_events
        self.alert_callbacks: list[AlertCallback] = []
        self._events: deque[TrackingEvent] = deque(maxlen=max_events)
        self._lock = threading.Lock()

    @property
    def events(self) -> list[TrackingEvent]:
        """The last `max_events` events, the oldest first."""
        with self._lock:
            return list(self._events)

    def get_events(
        self,
        event_type: str | None = None,
        last_n: int | None = None,
        since: float | None = None,
    ) -> list[TrackingEvent]:
        """Events of a type, at or after `since` (seconds since 1970), of these the last `last_n`."""
        return selected(self.events, event_type, last_n, since)

    def get_alerts(self, last_n: int | None = None) -> list[TrackingEvent]:
        """Warnings, criticals and errors, the last `last_n` of them."""
        alerts = [event for event in self.events if event.event_type in ALERT_TYPES]
        return selected(alerts, last_n=last_n)

    def get_memory_timeline(self, interval: float = 1.0) -> dict[str, list[Any]]:
        """Memory every `interval` seconds from the first event to the last: `timestamps` (seconds since
        1970), `allocated` and `reserved` (bytes), of equal length. ValueError: no interval above 0."""
        return timeline(self.events, interval)

    def export_events(
        self,
        filename: str | os.PathLike[str],
        format: str = "csv",
        schema_version: int = SCHEMA_VERSION_V2,
    ) -> None:
        """Writes the events as telemetry, `format` "csv" or "json", else ValueError.

        `schema_version`: 2, or 3 or 4 for Stormlog.
        """
        records = as_telemetry(self.events, self.collector_capabilities, self._interval_ms())
        write_telemetry_events(filename, records, format, schema_version)

    def _interval_ms(self) -> int:
        return int(round(self.sampling_interval * 1000))

    def add_alert_callback(self, callback: AlertCallback) -> None:
        """Calls `callback(event)` for each warning, critical and error event, and logs its
        exceptions."""
        self.alert_callbacks.append(callback)

    def remove_alert_callback(self, callback: AlertCallback) -> None:
        """Removes the callback, if it is registered."""
        if callback in self.alert_callbacks:
            self.alert_callbacks.remove(callback)

    def _call_back(self, event: TrackingEvent) -> None:
        for callback in list(self.alert_callbacks):
            try:
                callback(event)
            except Exception:
                logger.exception("an alert callback failed")
