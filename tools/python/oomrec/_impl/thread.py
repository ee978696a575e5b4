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

from .recorder import RECORDER, at_begin, at_fork

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
        _callbacks.remove(self)

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
    _callbacks.add(subscription)
    return subscription


class _CallbackThread:
    """The thread, and the subscriptions that it calls."""

    def __init__(self) -> None:
        # Replaced as a whole, never modified, so that a forked child finds it complete.
        self._subscriptions: tuple[Subscription, ...] = ()
        self.reset()

    def reset(self) -> None:
        """In a forked child: it has no thread, and its copy of the lock may be locked for ever."""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._changed = threading.Event()  # the thread sleeps on this if the library has no futex

    def add(self, subscription: Subscription) -> None:
        # Load it here, not in the thread: a fork meanwhile would find it half loaded.
        RECORDER.is_active()
        with self._lock:
            self._subscriptions += (subscription,)
        try:
            self.ensure_running()
        except BaseException:  # no thread can be started: the caller may try again
            self.remove(subscription)
            raise
        self._wake()

    def remove(self, subscription: Subscription) -> None:
        with self._lock:
            left = tuple(each for each in self._subscriptions if each is not subscription)
            self._subscriptions = left
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        RECORDER.wake()

    def ensure_running(self) -> None:
        """Starts the thread if there are subscriptions and it does not run."""
        with self._lock:
            if self._thread is None and self._subscriptions:
                self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
                try:
                    self._thread.start()
                except BaseException:
                    self._thread = None
                    raise

    def stop(self) -> None:
        """At exit: no callback may begin while the interpreter finalizes its modules."""
        thread = self._thread
        if thread is None:
            return
        self._subscriptions = ()
        self._wake()
        if thread is not threading.current_thread():
            thread.join(0.1)

    def _run(self) -> None:
        seen = 0  # not the current value: events since the first subscription would be missed
        while True:
            subscriptions = self._subscriptions
            if not subscriptions:
                with self._lock:
                    if not self._subscriptions:
                        self._thread = None
                        return
                continue
            due = min(subscription._due for subscription in subscriptions)
            sleep_s = min(max(0.0, due - time.monotonic()), LONGEST_S)
            if not RECORDER.library.preloaded:
                sleep_s = min(sleep_s, TICK_S)
            value = self._sleep(seen, sleep_s)
            RECORDER.refresh()
            for subscription in self._subscriptions:
                subscription._call_if(woken=value != seen)
            seen = value

    def _sleep(self, seen: int, sleep_s: float) -> int:
        """Sleeps until the futex differs from `seen`, at most `sleep_s`; returns its value."""
        if not RECORDER.library.has("wake"):
            self._changed.wait(sleep_s)
            self._changed.clear()
            return seen
        if (
            seen == 0
        ):  # perhaps a forked child without a recording yet, whose futex nothing would wake
            sleep_s = min(sleep_s, TICK_S)
        return RECORDER.wait(seen, int(sleep_s * 1000) + (sleep_s > 0))


_callbacks = _CallbackThread()
at_fork(_callbacks.reset)
at_begin(_callbacks.ensure_running)
atexit.register(_callbacks.stop)


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
