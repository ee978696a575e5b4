"""torch requests too much, twice. The second exception is not caught."""

import torch


def ask(gib):
    return torch.empty(gib << 30, dtype=torch.uint8)


def main():
    model = torch.nn.Linear(64, 64)
    model(torch.randn(8, 64)).sum().backward()
    print("trained", flush=True)
    ask(4096)


main()
