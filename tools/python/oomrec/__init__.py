"""oomrec from inside a Python program.

Start the program under the recorder:

    oomrec run --limit 8G train.py

Without it every call here still works, and none fails. `is_active` says what is then not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._bundles import dump, last_bundle
from ._capture import capture_oom
from ._labels import context, mark
from ._library import LIBRARY
from ._near_limit import NearLimit, on_near_limit
from ._usage import Activity, DeviceUsage, SpaceUsage, Usage, is_active, set_limit, usage

if TYPE_CHECKING:
    from ._objects import LivingObject, LivingObjects, Referrer, objects
    from ._watch import ExceptionWatch, watch_exceptions
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

# What is imported when it is first asked for, so that `import oomrec` takes few milliseconds: names, and
# modules of this package.
_LATER = {
    "ExceptionWatch": "_watch",
    "watch_exceptions": "_watch",
    "OOMExceptionClassification": "classify",
    "classify_oom_exception": "classify",
    "LivingObject": "_objects",
    "LivingObjects": "_objects",
    "Referrer": "_objects",
    "objects": "_objects",
}
_MODULES = ("classify", "errors", "torch")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LATER:
        value = getattr(import_module("." + _LATER[name], __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
