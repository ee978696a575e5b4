"""The package's one thread, for what must happen while the program does something else.

It exists only while something is subscribed: callbacks of on_near_limit, trackers. It sleeps in C on a
word of the recording, without the interpreter's lock; a refusal, a bundle or memory that passes a
percentage asked for wakes it at once, a new subscription too. No hook ever calls Python: it raises that
word, and this thread, awake, calls.

After a fork the child has no thread; the package's next function that is called there starts one.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from typing import Callable

from ._library import Library
from ._session import at_begin, at_fork, look, recorder

NAME = "oomrec"
TICK_S = 0.1  # between two looks at what nobody tells, where allocations are not seen
LONGEST_S = 60.0  # of one sleep


class Subscription:
    """A callback of the thread's; `cancel()` ends it. Made by `subscribe`."""

    __slots__ = ("_callback", "_due", "_interval_s", "_on_events", "_told")

    def __init__(
        self, callback: Callable[[], None], interval_s: float | None, on_events: bool
    ) -> None:
        self._callback = callback
        self._interval_s = interval_s
        self._on_events = on_events
        self._told = False
        self._due = float("inf") if interval_s is None else time.monotonic() + interval_s

    def cancel(self) -> None:
        """No further call begins; one that is under way is not waited for. May be called twice."""
        _remove(self)

    def _call_if(self, woken: bool) -> None:
        now = time.monotonic()
        if now < self._due and not (woken and self._on_events):
            return
        if self._interval_s is not None and now >= self._due:
            # In step with the first one; what was missed is left out.
            missed = (now - self._due) // self._interval_s
            self._due += (missed + 1) * self._interval_s
        try:
            self._callback()
        except BaseException as error:  # SystemExit, too: it would end this thread alone
            if not self._told:
                self._told = True
                _tell(self._callback, error)


def subscribe(
    callback: Callable[[], None], interval_s: float | None = None, on_events: bool | None = None
) -> Subscription:
    """Has the package's thread call `callback()` from now on.

    `interval_s`: seconds between two calls, the first after one of them; None: no calls by the clock.
    `on_events`: calls when the recording's word is raised (a refusal, a bundle, a percentage that was
    asked for), within 10 ms; by default only where there is no interval. What the callback raises is
    told on stderr once; it is called again all the same. ValueError for an interval that is not above 0.
    """
    if interval_s is not None and not interval_s > 0:
        raise ValueError(f"an interval is a number of seconds above 0, not {interval_s!r}")
    if on_events is None:
        on_events = interval_s is None
    subscription = Subscription(callback, interval_s, on_events)
    _add(subscription)
    return subscription


# Replaced as a whole, never changed: a forked child finds it complete.
_subscriptions: tuple[Subscription, ...] = ()
_thread: threading.Thread | None = None
_lock = threading.Lock()
_changed = threading.Event()  # what the thread sleeps on where the library has no word for it


def _add(subscription: Subscription) -> None:
    global _subscriptions
    recorder()  # loaded here and not in the thread: a fork at that moment would find half of it
    with _lock:
        _subscriptions += (subscription,)
    try:
        _ensure()
    except BaseException:  # there can be no thread: who subscribed hears of it, and may try again
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


def _ensure() -> None:
    """Starts the thread if there is something for it to do and it does not run."""
    global _thread
    with _lock:
        if _thread is None and _subscriptions:
            _thread = threading.Thread(target=_run, name=NAME, daemon=True)
            try:
                _thread.start()
            except BaseException:
                _thread = None
                raise


def _forget() -> None:
    """In a forked child: the thread is not there, and its lock may be held by nobody."""
    global _changed, _lock, _thread
    _lock = threading.Lock()
    _changed = threading.Event()
    _thread = None


def _end() -> None:
    """At the interpreter's end: no callback begins while modules are taken down."""
    global _subscriptions
    thread = _thread
    if thread is None:
        return
    _subscriptions = ()
    _wake()
    if thread is not threading.current_thread():
        thread.join(0.1)


at_fork(_forget)
at_begin(_ensure)
atexit.register(_end)


def _run() -> None:
    global _thread
    library = recorder()
    seen = 0  # not the present word: what has happened since somebody subscribed would be missed
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
        word = _sleep(library, seen, sleep_s)
        if not library.preloaded:
            look()
        for subscription in _subscriptions:
            subscription._call_if(woken=word != seen)
        seen = word


def _sleep(library: Library, seen: int, sleep_s: float) -> int:
    """Sleeps until the word is not `seen`, or for that long; returns the word."""
    if not library.has("wake"):
        _changed.wait(sleep_s)
        _changed.clear()
        return seen
    if seen == 0:  # perhaps a forked child that has no recording yet, and so no word to be woken by
        sleep_s = min(sleep_s, TICK_S)
    return library.wait(seen, int(sleep_s * 1000) + (sleep_s > 0))


def _tell(callback: Callable[[], None], error: BaseException) -> None:
    name = getattr(callback, "__qualname__", None) or repr(callback)
    try:
        import traceback  # takes 3 ms, which most programs never need

        lines = traceback.format_exception(type(error), error, error.__traceback__)
        sys.stderr.write(
            f"oomrec: {name}, called by oomrec's thread, raised this; it is called again, but "
            f"what it raises is not told again\n{''.join(lines)}"
        )
        sys.stderr.flush()
    except Exception:
        return  # stderr is closed, or None: there is nowhere to tell it
