"""What the profilers and trackers of this package raise. A full memory is Python's own MemoryError."""

from __future__ import annotations


class ProfilerError(Exception):
    """The base of what this package raises."""


class ConfigurationError(ProfilerError, RuntimeError):
    """Something was asked for that this machine, program or option cannot give; says what to use."""


class VisualizationError(ProfilerError):
    """A picture cannot be drawn; says which package is missing."""
