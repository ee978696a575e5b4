"""Exceptions that this package's profilers and trackers raise. Lack of memory is Python's own MemoryError."""

from __future__ import annotations


class ProfilerError(Exception):
    """The base of what this package raises."""


class ConfigurationError(ProfilerError, RuntimeError, ValueError):
    """This machine, program or option does not support the request; the message says what to use instead.

    Programs of GPU Memory Profiler expect a RuntimeError for a missing device, and a ValueError for a bad
    device number or option. This class is both.
    """


class VisualizationError(ProfilerError):
    """A picture cannot be drawn; the message names the missing package."""
