"""Fake modules that answer like PyTorch, for tests in this process, or the absence of all of them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

MIB = 1 << 20
GIB = 1 << 30


def hide_frameworks(monkeypatch) -> None:
    """No module with GPU support is imported or importable."""
    for name in ("torch", "numba.cuda", "cuda.cuda", "cuda.bindings.driver"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("oomrec.gpumemprof._devices.importlib.import_module", _no_module)


def _no_module(name):
    raise ImportError(name)


def fake_torch(allocated=300 * MIB, reserved=500 * MIB, free=GIB, total=4 * GIB, hip=None):
    """A module that answers like PyTorch with two GPUs. `state` has its memory figures."""
    torch = ModuleType("torch")
    state = torch.state = {
        "allocated_bytes.all.current": allocated,
        "reserved_bytes.all.current": reserved,
        "active_bytes.all.current": allocated + 1,
        "inactive_split_bytes.all.current": 7,
        "allocated_bytes.all.peak": allocated,
        "reserved_bytes.all.peak": reserved,
        "num_alloc_retries": 2,
        "num_ooms": 1,
    }
    calls = torch.calls = []
    torch.Tensor = type("Tensor", (), {})
    torch.device = lambda name: SimpleNamespace(
        type=name.partition(":")[0], index=int(name[5:]) if ":" in name else None, __str__=name
    )
    torch.__version__ = "2.0"
    torch.version = SimpleNamespace(cuda=None if hip else "13.0", hip=hip)
    torch.backends = SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 91000))
    torch.cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 2,
        current_device=lambda: 1,
        memory_stats=lambda device: dict(state),
        mem_get_info=lambda device: (free, total),
        max_memory_allocated=lambda device: state["allocated_bytes.all.peak"],
        max_memory_reserved=lambda device: state["reserved_bytes.all.peak"],
        reset_peak_memory_stats=lambda device: calls.append(("reset", device)),
        synchronize=lambda device=None: calls.append(("synchronize", device)),
        empty_cache=lambda: calls.append(("empty_cache", None)),
        get_device_properties=lambda device: SimpleNamespace(
            name="Fake 4000", major=9, minor=0, multi_processor_count=132, total_memory=total
        ),
    )
    return torch
