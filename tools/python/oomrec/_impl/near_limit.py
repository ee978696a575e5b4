"""on_near_limit: calls back before memory runs out."""

from __future__ import annotations

from typing import Callable

from .recorder import RECORDER, at_begin
from .thread import TICK_S, Subscription, subscribe
from .usage import Usage, read

# A callback is rearmed once memory use has fallen this much below its percentage. A program that works close
# to the threshold is then notified once, not at every batch.
HYSTERESIS_PERCENT = 5
# Poll interval, for what no allocation notifies: RSS against a cgroup's limit, and falling memory use.
POLL_S = 1.0

_requests: dict[int, int] = {}  # percent: the number of callbacks for it


class NearLimit:
    """The handle that `on_near_limit` returns; `cancel()` ends it."""

    __slots__ = ("_armed", "_callback", "_percent", "_subscription")

    def __init__(self, callback: Callable[[Usage], None], percent: int) -> None:
        self._callback = callback
        self._percent = percent
        self._armed = True
        _request(percent)
        is_notified = RECORDER.library.preloaded and RECORDER.library.has("wake")
        poll_s = POLL_S if is_notified else TICK_S
        self._subscription: Subscription | None = subscribe(self._check, poll_s, on_events=True)

    def cancel(self) -> None:
        """No further call begins. May be called twice, and in the callback itself."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()
            _withdraw(self._percent)

    def _check(self) -> None:
        usage = read(RECORDER.library)
        if usage is None or self._subscription is None:
            return
        percent = nearest_percent(usage)
        if percent < self._percent - HYSTERESIS_PERCENT:
            self._armed = True
        elif percent >= self._percent and self._armed:
            self._armed = False
            self._callback(usage)
            self._rearm_if_fallen()  # the callback may have freed enough

    def _rearm_if_fallen(self) -> None:
        usage = read(RECORDER.library)
        if usage is not None and nearest_percent(usage) < self._percent - HYSTERESIS_PERCENT:
            self._armed = True


def nearest_percent(usage: Usage) -> float:
    """The used share of the nearest limit, of the host or of a device, in percent."""
    parts = [(usage.used_of_limit, usage.limit)]
    parts += ((device.counted, device.limit) for device in usage.devices)
    parts += ((device.used, device.total) for device in usage.devices)
    return max((100.0 * used / limit for used, limit in parts if limit), default=0.0)


def on_near_limit(callback: Callable[[Usage], None], percent: int = 90) -> NearLimit:
    """Calls `callback(usage)` when memory use passes a percentage of the nearest limit.

        def shed(usage: oomrec.Usage) -> None:
            cache.clear()

        watch = oomrec.on_near_limit(shed, percent=85)
        ...
        watch.cancel()

    The limit is the nearest one of host memory (soft limit, RLIMIT_AS, cgroup) or of a device. The callback
    runs again only after memory use has fallen 5 percent below the threshold.

    Callbacks run one after another, in a thread of this package, while the program goes on. They start within
    10 ms of the allocation that passed the threshold; without the recorder, within 0.1 s. An exception in a
    callback is reported once on stderr, and the callback stays registered.

    Args:
        callback: receives the figures of that moment
        percent: 1 to 100

    Returns:
        a handle: `cancel()` ends it

    Raises:
        ValueError: percent is not from 1 to 100
        TypeError: percent is not a number, or the callback is not callable
    """
    if not callable(callback):
        raise TypeError(f"a callback is a function of one argument, not {callback!r}")
    if not isinstance(percent, (int, float)):
        raise TypeError(f"percent is a number from 1 to 100, not {percent!r}")
    if not 1 <= percent <= 100:
        raise ValueError(f"percent is a number from 1 to 100, not {percent!r}")
    return NearLimit(callback, int(percent))


def _request(percent: int) -> None:
    _requests[percent] = _requests.get(percent, 0) + 1
    RECORDER.notify_at(percent, 1)


def _withdraw(percent: int) -> None:
    _requests[percent] -= 1
    if not _requests[percent]:
        del _requests[percent]
        RECORDER.notify_at(percent, 0)


def _renew_requests() -> None:
    """A forked child has its own recording, which has no requests yet."""
    for percent in tuple(_requests):
        RECORDER.notify_at(percent, 1)


at_begin(_renew_requests)
