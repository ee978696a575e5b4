"""Callbacks before memory runs out."""

from __future__ import annotations

from typing import Callable

from ._session import at_begin, recorder
from ._thread import TICK_S, Subscription, subscribe
from ._usage import Usage, read

# A callback is armed again once memory has fallen this much below its percentage: a program that
# works just there is told once, not at every batch.
HYSTERESIS_PERCENT = 5
# Between two looks of our own: at a limit that only the clock sees (RSS against a cgroup's), and
# whether memory has fallen.
LOOK_S = 1.0

_asked: dict[int, int] = {}  # percent: how many ask the recording for it


class NearLimit:
    """The handle that `on_near_limit` returns; `cancel()` ends it."""

    __slots__ = ("_armed", "_callback", "_percent", "_subscription")

    def __init__(self, callback: Callable[[Usage], None], percent: int) -> None:
        self._callback = callback
        self._percent = percent
        self._armed = True
        _ask(percent)
        library = recorder()
        is_told = library.preloaded and library.has("wake")
        look_s = LOOK_S if is_told else TICK_S
        self._subscription: Subscription | None = subscribe(self._look, look_s, on_events=True)

    def cancel(self) -> None:
        """No further call begins. May be called twice, and in the callback itself."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()
            _ask_no_more(self._percent)

    def _look(self) -> None:
        usage = read(recorder())
        if usage is None or self._subscription is None:
            return
        percent = nearest_percent(usage)
        if percent < self._percent - HYSTERESIS_PERCENT:
            self._armed = True
        elif percent >= self._percent and self._armed:
            self._armed = False
            self._callback(usage)
            self._arm()  # it may have given back what it could

    def _arm(self) -> None:
        usage = read(recorder())
        if usage is not None and nearest_percent(usage) < self._percent - HYSTERESIS_PERCENT:
            self._armed = True


def nearest_percent(usage: Usage) -> float:
    """How much of the nearest limit is used, of the host's or of a device's own, in percent."""
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


def _ask(percent: int) -> None:
    _asked[percent] = _asked.get(percent, 0) + 1
    recorder().notify_at(percent, 1)


def _ask_no_more(percent: int) -> None:
    _asked[percent] -= 1
    if not _asked[percent]:
        del _asked[percent]
        recorder().notify_at(percent, 0)


def _ask_again() -> None:
    """A forked child has a recording of its own, which was asked for nothing yet."""
    for percent in tuple(_asked):
        recorder().notify_at(percent, 1)


at_begin(_ask_again)
