"""What the profilers and trackers of this package raise. A full memory is Python's own MemoryError."""

from __future__ import annotations


class ProfilerError(Exception):
    """The base of what this package raises."""


class ConfigurationError(ProfilerError, RuntimeError, ValueError):
    """Something was asked for that this machine, program or option cannot give; says what to use.

    Programs of GPU Memory Profiler expect a RuntimeError where a device is missing, and a ValueError
    for a number of a device or an option that makes no sense: this is both.
    """


class VisualizationError(ProfilerError):
    """A picture cannot be drawn; says which package is missing."""
