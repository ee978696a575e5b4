"""A periodic call, such as a sample, between a start and a stop."""

from __future__ import annotations

import os
import threading
from typing import Callable

from .._impl.thread import Subscription, subscribe

_LONGEST_WAIT_S = 1.0  # for a call in progress, which may wait for a device


class PeriodicCall:
    """Calls back periodically in the package's thread while it is running.

    It does not run in a forked child: the snapshots are the parent's, and CUDA fails in a forked child.
    """

    def __init__(self) -> None:
        self._callback: Callable[[], None] | None = None
        self._subscription: Subscription | None = None
        self._pid = 0
        self._calling = threading.RLock()  # the callback itself may stop us

    @property
    def is_running(self) -> bool:
        """Whether it was started in this process and not stopped."""
        return self._subscription is not None and self._pid == os.getpid()

    def start(self, callback: Callable[[], None], interval_s: float) -> None:
        """Calls `callback()` every `interval_s` seconds. Raises ValueError if that is not above 0."""
        self.stop()
        self._callback, self._pid = callback, os.getpid()
        self._calling = threading.RLock()  # in a forked child the old one may be locked for ever
        with self._calling:  # the first call waits: it may stop us, and so needs the subscription
            self._subscription = subscribe(self._call, interval_s)

    def stop(self) -> None:
        """No further call begins, and one in progress is waited for. No effect if it is not running."""
        subscription, self._subscription = self._subscription, None
        self._callback = None  # releases the object that it is bound to
        if subscription is None:
            return
        subscription.cancel()
        # In a forked child the lock may be held by a thread that only the parent has.
        if self._pid == os.getpid() and self._calling.acquire(timeout=_LONGEST_WAIT_S):
            self._calling.release()

    def _call(self) -> None:
        if self._pid != os.getpid():
            self.stop()
            return
        with self._calling:
            callback = self._callback
            if callback is not None:  # None: stopped meanwhile
                callback()
