"""Tensors on the CPU under torch.profiler, with memory profiling or without."""

import ctypes
import json

import torch
from torch.profiler import ProfilerActivity, profile

dump = getattr(ctypes.CDLL(None), "oomrec_dump", lambda mark: None)


def make_tensors():
    a = torch.ones(1000, 1000)
    b = a + a
    del a
    return b, torch.empty(700), torch.zeros(300_000)


def profiled(with_memory):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=with_memory) as profiler:
        dump(b"before")
        kept = make_tensors()
        dump(b"after")
    events = profiler.profiler.kineto_results.events()
    del kept
    return [event.nbytes() for event in events if event.name() == "[memory]"]


print(json.dumps({"without": profiled(False), "with": profiled(True)}))
