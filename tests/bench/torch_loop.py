"""torch_loop.py STEPS: trains a small network; prints the loop's CPU seconds, import left out."""

import sys
import time

import torch

torch.manual_seed(1)
torch.set_num_threads(1)


def main(steps):
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters())
    lost = torch.nn.CrossEntropyLoss()
    for step in range(-(steps // 10), steps):
        if step == 0:
            began = time.process_time()
        batch = torch.randn(32, 64)
        labels = torch.randint(0, 10, (32,))
        optimizer.zero_grad()
        lost(model(batch), labels).backward()
        optimizer.step()
    print("figure:", time.process_time() - began)


main(int(sys.argv[1]))
