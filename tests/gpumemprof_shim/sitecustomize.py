"""Runs the published packages' own tests against oomrec: `import gpumemprof`, `import tfmemprof` and, as it is
called today, `import stormlog` get ours.

With this directory on PYTHONPATH, Python imports this module at its start, also in the programs that the tests
start. Two kinds of help let a test reach our code at all:

* What oomrec does not have, a module or a name in one, is a stand-in that raises when it is used. So only the
  tests that use it fail, not every test of a file that imports it.
* The tests replace what the published modules import: psutil.Process, torch. Ours read the same figures from
  /proc and the imported PyTorch. They get the replacement instead.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType, SimpleNamespace

PACKAGES = {
    "gpumemprof": "oomrec.gpumemprof",
    "tfmemprof": "oomrec.tfmemprof",
    "stormlog": "oomrec.gpumemprof",
    "stormlog.tensorflow": "oomrec.tfmemprof",
}
# What the import system sets in a module.
DESCRIPTION = ("__spec__", "__loader__", "__package__", "__path__")


class Absent:
    """Stands for what oomrec does not have."""

    def __init__(self, name):
        vars(self)["name"] = name

    def _fail(self, *args, **kwargs):
        raise NotImplementedError(f"oomrec has no {vars(self)['name']}")

    __call__ = __getattr__ = __setattr__ = __iter__ = __bool__ = _fail


def stand_in(module):
    def getattr_of_module(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{module}.{name}")

    return getattr_of_module


def ours(name):
    """The name of our module for a published one, which need not exist; None: it is none of theirs."""
    package = name
    while package and package not in PACKAGES:
        package = package.rpartition(".")[0]
    return PACKAGES[package] + name[len(package) :] if package else None


def exists(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of its parent
        return False


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds oomrec's module for each name of the published packages."""

    def find_spec(self, name, path=None, target=None):
        module = ours(name)
        parent = name.rpartition(".")[0]
        if module is None or (parent and parent not in PACKAGES and exists(ours(parent))):
            return None
        is_package = name in PACKAGES or not exists(module)  # a stand-in may have any module
        return importlib.machinery.ModuleSpec(name, self, is_package=is_package)

    def create_module(self, spec):
        name = ours(spec.name)
        module = importlib.import_module(name) if exists(name) else ModuleType(spec.name)
        self._own = {name: vars(module)[name] for name in DESCRIPTION if name in vars(module)}
        return module

    def exec_module(self, module):
        # The import system has just described it as the alias.
        vars(module).update(self._own)
        module.__getattr__ = stand_in(module.__name__)
        replaceable(module)


def replaceable(module):
    """Gives a module what a test may replace in it."""
    if module.__name__ == "oomrec.gpumemprof.cpu_profiler":
        from oomrec.gpumemprof import _proc

        module.psutil = SimpleNamespace(Process=None)
        use_process(_proc, module.psutil)
    if hasattr(module, "imported"):  # finds PyTorch in sys.modules; the published modules import it
        with contextlib.suppress(ImportError):
            module.torch = importlib.import_module("torch")
            use_framework(module, "torch", "torch")
    if "exec_command" in vars(module):
        # It would replace the process, which runs the tests.
        module.exec_command = Absent("a command line within the process")
    if hasattr(module, "tensorflow"):
        module.tf, module.TF_AVAILABLE = None, False
        use_framework(module, "tf", "tensorflow")


def use_process(proc, psutil):
    """Reads this process' figures from psutil.Process if a test has set it."""
    sizes, percent = proc.virtual_and_resident_bytes, proc.CpuClock.percent

    def is_replaced():
        return psutil.Process is not None

    def replaced_sizes():
        if not is_replaced():
            return sizes()
        info = psutil.Process().memory_info()
        return info.vms, info.rss

    def replaced_percent(clock):
        return psutil.Process().cpu_percent() if is_replaced() else percent(clock)

    proc.virtual_and_resident_bytes = replaced_sizes
    proc.CpuClock.percent = replaced_percent


def use_framework(module, attribute, framework):
    """Every module of ours finds the PyTorch or TensorFlow that a test has set in `module`."""
    original = vars(module)[attribute]

    def found(name, imported):
        replaced = vars(module)[attribute]
        return replaced if name == framework and replaced is not original else imported(name)

    for other in [each for name, each in sys.modules.items() if name.startswith("oomrec.")]:
        if "imported" in vars(other):
            other.imported = functools.partial(found, imported=other.imported)


sys.meta_path.insert(0, Alias())
