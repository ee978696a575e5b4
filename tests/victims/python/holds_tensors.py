"""Holds tensors: parameters with gradients, what autograd saved, views, and kinds without memory."""

import json
import sys
import warnings

import numpy as np
import oomrec
import torch

warnings.simplefilter("error")  # a look at objects may not make them warn


def main():
    model = torch.nn.Linear(1024, 1024)
    shared = torch.ones(3 << 18)
    as_array = shared.numpy()[5:]
    of_array = torch.from_numpy(np.ones(5 << 17))
    no_memory = [torch.empty(1 << 30, device="meta"), torch.ones(1 << 20).to_sparse().coalesce()]
    activation = model(torch.ones(512, 1024)).exp()
    losses = [activation.sum()]
    losses[0].backward(retain_graph=True)
    del activation

    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: packed.append(t) or t):
        hooked = (torch.ones(7 << 18, requires_grad=True) * 2).exp().sum()

    def counts():
        return [
            sys.getrefcount(each) for each in (shared, model.weight, of_array, losses[0], hooked)
        ]

    before = counts()
    found = oomrec.objects()
    assert counts() == before
    assert not packed, "a hook that unpacks was called"
    print(json.dumps(json.loads(found.to_json())))
    del as_array, no_memory


main()
