"""A tracker's thresholds and alerts, and the watchdog that acts on them."""

from __future__ import annotations

import pytest
from oomrec.gpumemprof import MemoryWatchdog
from oomrec.gpumemprof._proc import resident_bytes
from scripted_tracker import MIB, kinds, tick, tracker_of


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ((100, 100, 799), []),
        ((100, 100, 800), ["warning"]),
        ((100, 100, 949), ["warning"]),
        ((100, 100, 950), ["critical"]),
        ((100, 142, 200), []),
        ((100, 143, 200), ["warning"]),
    ],
)
def test_thresholds(sample, expected):
    tracker = tracker_of((100, 100, 100), sample)
    seen = []
    tracker.add_alert_callback(seen.append)
    tick(tracker)
    assert [event.event_type for event in tracker.get_alerts()] == expected
    assert [event.event_type for event in seen] == expected
    assert tracker.stats["alert_count"] == len(expected)


def test_rapid_growth_is_an_alert():
    tracker = tracker_of((100, 100, 100), (200, 200, 200), (301, 301, 301))
    tick(tracker)
    assert tracker.get_alerts() == []
    tick(tracker)
    [alert] = tracker.get_alerts()
    assert alert.metadata == {"large_allocation": True}


def test_a_lasting_alert_repeats_once_a_second(monkeypatch):
    now = [1000.0]
    tracker = tracker_of((100, 100, 960))
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for _ in range(25):
        tick(tracker)
        now[0] += 0.1
    assert kinds(tracker).count("critical") == 3


def test_thresholds_can_be_set_and_unknown_ones_are_rejected():
    tracker = tracker_of((100, 100, 100), (100, 100, 550))
    tracker.set_threshold("memory_warning_percent", 50)
    tick(tracker)
    assert kinds(tracker)[-1] == "warning"
    with pytest.raises(ValueError, match="Unknown threshold: percent; there are memory_warning"):
        tracker.set_threshold("percent", 1)


def test_alerts_can_be_switched_off():
    tracker = tracker_of((100, 100, 990))
    tracker.enable_alerts = False
    tick(tracker)
    assert tracker.get_alerts() == []


def test_a_failing_callback_does_no_harm():
    tracker = tracker_of((100, 100, 990))
    seen = []

    def fails(event):
        raise KeyError("mine")

    tracker.add_alert_callback(fails)
    tracker.add_alert_callback(seen.append)
    tick(tracker)
    assert len(seen) == 1
    tracker.remove_alert_callback(fails)
    tracker.remove_alert_callback(fails)


def test_the_watchdog_cleans_up_at_most_every_30_seconds(monkeypatch):
    tracker = tracker_of((100, 100, 880))
    watchdog = MemoryWatchdog(tracker)
    tick(tracker)
    assert watchdog.get_cleanup_stats()["cleanup_count"] == 0  # 88 % < 90 %
    tracker._rate_limit.reset()
    tracker.collector.samples = [(100, 100, 910)]
    tick(tracker)
    assert tracker.collector.calls == ["empty_cache"]
    tracker._rate_limit.reset()
    tracker.collector.samples = [(100, 100, 990)]
    tick(tracker)
    assert watchdog.cleanup_count == 1
    watchdog.last_cleanup_time -= 31
    tracker._rate_limit.reset()
    tick(tracker)
    assert watchdog.cleanup_count == 2
    assert tracker.collector.calls == ["empty_cache", "synchronize", "empty_cache"]
    watchdog.force_cleanup()
    assert kinds(tracker).count("cleanup") == 3
    assert watchdog.get_cleanup_stats() == {
        "cleanup_count": 3,
        "last_cleanup_time": watchdog.last_cleanup_time,
        "auto_cleanup_enabled": True,
        "cleanup_threshold": 0.9,
        "aggressive_cleanup_threshold": 0.95,
    }


def test_a_watchdog_without_cleanup():
    tracker = tracker_of((100, 100, 990))
    watchdog = MemoryWatchdog(tracker, auto_cleanup=False)
    tick(tracker)
    assert watchdog.cleanup_count == 0


def test_an_aggressive_cleanup_trims_the_heap():
    tracker = tracker_of((100, 100, 100))
    watchdog = MemoryWatchdog(tracker)
    blocks = [bytes(100_000) for _ in range(1000)]
    del blocks[:-1]  # the last block keeps the heap from shrinking by itself
    before = resident_bytes()
    watchdog.force_cleanup()
    kept = resident_bytes()
    watchdog.force_cleanup(aggressive=True)
    assert kept > before - 10 * MIB and resident_bytes() < before - 50 * MIB


def test_a_failed_cleanup_is_an_event():
    tracker = tracker_of((100, 100, 100))
    tracker.collector.empty_cache = lambda: 1 / 0
    MemoryWatchdog(tracker).force_cleanup()
    assert kinds(tracker)[-1] == "error"
