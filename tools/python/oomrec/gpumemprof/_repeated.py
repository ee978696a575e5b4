"""Something that is done every so many seconds, between a start and a stop: samples, looks."""

from __future__ import annotations

import os
from typing import Callable

from .._thread import Subscription, subscribe


class Repeated:
    """Calls back on the package's thread while it is on.

    In a forked child it is off: the snapshots are its parent's, and CUDA fails in a forked child.
    """

    def __init__(self) -> None:
        self._callback: Callable[[], None] | None = None
        self._subscription: Subscription | None = None
        self._pid = 0

    @property
    def is_on(self) -> bool:
        """Whether it was started in this process, and not stopped."""
        return self._subscription is not None and self._pid == os.getpid()

    def start(self, callback: Callable[[], None], interval_s: float) -> None:
        """Has `callback()` called every `interval_s` seconds. ValueError where that is not above 0."""
        self.stop()
        self._callback, self._pid = callback, os.getpid()
        self._subscription = subscribe(self._call, interval_s)

    def stop(self) -> None:
        """No further call begins; nothing if it is off."""
        subscription, self._subscription = self._subscription, None
        self._callback = None  # its object may go when nobody else holds it
        if subscription is not None:
            subscription.cancel()

    def _call(self) -> None:
        callback = self._callback
        if self._pid != os.getpid():
            self.stop()
        elif callback is not None:  # it may come before subscribe() has returned
            callback()
