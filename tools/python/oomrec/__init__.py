"""oomrec from inside a Python program.

Start the program under the recorder:

    oomrec run --limit 8G train.py

Without the recorder every call still works, and none fails. `is_active` reports what is then missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._impl.bundles import dump, last_bundle
from ._impl.capture import capture_oom
from ._impl.command import ended
from ._impl.labels import context, mark
from ._impl.library import LIBRARY
from ._impl.near_limit import NearLimit, on_near_limit
from ._impl.usage import Activity, DeviceUsage, SpaceUsage, Usage, is_active, set_limit, usage

if TYPE_CHECKING:
    from ._impl.objects import LivingObject, LivingObjects, Referrer, objects
    from ._impl.watch import ExceptionWatch, watch_exceptions
    from .classify import OOMExceptionClassification, classify_oom_exception

# In the order of the pages in docs/python.
__all__ = [
    "capture_oom",
    "watch_exceptions",
    "ExceptionWatch",
    "classify_oom_exception",
    "OOMExceptionClassification",
    "objects",
    "LivingObjects",
    "LivingObject",
    "Referrer",
    "context",
    "mark",
    "dump",
    "last_bundle",
    "ended",
    "usage",
    "Usage",
    "SpaceUsage",
    "DeviceUsage",
    "set_limit",
    "on_near_limit",
    "NearLimit",
    "is_active",
    "Activity",
    "LIBRARY",
]

# Imported at first use, so that `import oomrec` takes only a few milliseconds: names and their modules.
_LAZY_NAMES = {
    "ExceptionWatch": "._impl.watch",
    "watch_exceptions": "._impl.watch",
    "OOMExceptionClassification": ".classify",
    "classify_oom_exception": ".classify",
    "LivingObject": "._impl.objects",
    "LivingObjects": "._impl.objects",
    "Referrer": "._impl.objects",
    "objects": "._impl.objects",
}
_LAZY_MODULES = ("classify", "errors", "torch")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY_NAMES:
        value = getattr(import_module(_LAZY_NAMES[name], __name__), name)
        globals()[name] = value
        return value
    if name in _LAZY_MODULES:
        return import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
