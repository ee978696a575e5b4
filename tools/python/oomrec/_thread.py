"""The package's one thread, which calls back while the program does something else.

It exists only while there are subscriptions: callbacks of on_near_limit, trackers. It sleeps in C on a
futex of the recording, without the GIL. A failure, a bundle, memory that passes a requested percentage, or a
new subscription wakes it at once. No hook ever calls Python: the hook increments the futex, and this thread
calls.

A forked child has no such thread. The next function of the package that is called there starts one.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from typing import Callable

from ._library import Library
from ._session import at_begin, at_fork, recorder, refreshed_recorder

NAME = "oomrec"
TICK_S = 0.1  # poll interval where no hook sees the allocations
LONGEST_S = 60.0  # of one sleep


class Subscription:
    """A callback that the thread calls until `cancel()`. Made by `subscribe`."""

    __slots__ = ("_callback", "_due", "_interval_s", "_on_events", "_error_reported")

    def __init__(
        self, callback: Callable[[], None], interval_s: float | None, on_events: bool
    ) -> None:
        self._callback = callback
        self._interval_s = interval_s
        self._on_events = on_events
        self._error_reported = False
        self._due = float("inf") if interval_s is None else time.monotonic() + interval_s

    def cancel(self) -> None:
        """No further call begins; does not wait for a call in progress. May be called twice."""
        _remove(self)

    def _call_if(self, woken: bool) -> None:
        now = time.monotonic()
        if now < self._due and not (woken and self._on_events):
            return
        if self._interval_s is not None and now >= self._due:
            # Stay in step with the first call, and skip those missed.
            missed = (now - self._due) // self._interval_s
            self._due += (missed + 1) * self._interval_s
        try:
            self._callback()
        except BaseException as error:  # SystemExit, too: it would end only this thread
            if not self._error_reported:
                self._error_reported = True
                _report_error(self._callback, error)


def subscribe(
    callback: Callable[[], None], interval_s: float | None = None, on_events: bool | None = None
) -> Subscription:
    """Has the package's thread call `callback()` from now on.

    `interval_s`: seconds between two calls, and before the first; None: no periodic calls.
    `on_events`: also calls within 10 ms of an event (a failure, a bundle, a requested percentage); by
    default only if there is no interval.

    An exception of the callback is reported once on stderr, and the callback stays subscribed. Raises
    ValueError for an interval that is not above 0.
    """
    if interval_s is not None and not interval_s > 0:
        raise ValueError(f"interval must be > 0 seconds, not {interval_s!r}")
    if on_events is None:
        on_events = interval_s is None
    subscription = Subscription(callback, interval_s, on_events)
    _add(subscription)
    return subscription


# Replaced as a whole, never modified, so that a forked child finds it complete.
_subscriptions: tuple[Subscription, ...] = ()
_thread: threading.Thread | None = None
_lock = threading.Lock()
_changed = threading.Event()  # the thread sleeps on this if the library has no futex


def _add(subscription: Subscription) -> None:
    global _subscriptions
    recorder()  # load it here, not in the thread: a fork meanwhile would find it half loaded
    with _lock:
        _subscriptions += (subscription,)
    try:
        _ensure_running()
    except BaseException:  # no thread can be started: the caller may try again
        _remove(subscription)
        raise
    _wake()


def _remove(subscription: Subscription) -> None:
    global _subscriptions
    with _lock:
        _subscriptions = tuple(each for each in _subscriptions if each is not subscription)
    _wake()


def _wake() -> None:
    _changed.set()
    recorder().wake()


def _ensure_running() -> None:
    """Starts the thread if there are subscriptions and it does not run."""
    global _thread
    with _lock:
        if _thread is None and _subscriptions:
            _thread = threading.Thread(target=_run, name=NAME, daemon=True)
            try:
                _thread.start()
            except BaseException:
                _thread = None
                raise


def _reset_in_child() -> None:
    """A forked child has no thread, and its copy of the lock may be locked for ever."""
    global _changed, _lock, _thread
    _lock = threading.Lock()
    _changed = threading.Event()
    _thread = None


def _stop() -> None:
    """At exit: no callback may begin while the interpreter finalizes its modules."""
    global _subscriptions
    thread = _thread
    if thread is None:
        return
    _subscriptions = ()
    _wake()
    if thread is not threading.current_thread():
        thread.join(0.1)


at_fork(_reset_in_child)
at_begin(_ensure_running)
atexit.register(_stop)


def _run() -> None:
    global _thread
    library = recorder()
    seen = 0  # not the current value: events since the first subscription would be missed
    while True:
        subscriptions = _subscriptions
        if not subscriptions:
            with _lock:
                if not _subscriptions:
                    _thread = None
                    return
            continue
        due = min(subscription._due for subscription in subscriptions)
        sleep_s = min(max(0.0, due - time.monotonic()), LONGEST_S)
        if not library.preloaded:
            sleep_s = min(sleep_s, TICK_S)
        value = _sleep(library, seen, sleep_s)
        if not library.preloaded:
            refreshed_recorder()
        for subscription in _subscriptions:
            subscription._call_if(woken=value != seen)
        seen = value


def _sleep(library: Library, seen: int, sleep_s: float) -> int:
    """Sleeps until the futex differs from `seen`, at most `sleep_s`; returns its value."""
    if not library.has("wake"):
        _changed.wait(sleep_s)
        _changed.clear()
        return seen
    if seen == 0:  # perhaps a forked child without a recording yet, whose futex nothing would wake
        sleep_s = min(sleep_s, TICK_S)
    return library.wait(seen, int(sleep_s * 1000) + (sleep_s > 0))


def _report_error(callback: Callable[[], None], error: BaseException) -> None:
    name = getattr(callback, "__qualname__", None) or repr(callback)
    try:
        import traceback  # imported here: takes 3 ms, and most programs never need it

        lines = traceback.format_exception(type(error), error, error.__traceback__)
        sys.stderr.write(
            f"oomrec: {name}, called by oomrec's thread, raised an exception; it stays subscribed, "
            f"and its further exceptions are not reported\n{''.join(lines)}"
        )
        sys.stderr.flush()
    except Exception:
        return  # stderr is closed, or None
