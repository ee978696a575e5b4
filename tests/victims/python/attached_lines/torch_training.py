# A training on the CPU that keeps its losses' tensors.
import torch

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
optimizer = torch.optim.Adam(model.parameters())
attach()  # noqa: F821 (tests/line_shares.py)
kept = []
for step in range(60):
    batch = torch.randn(64, 512)
    output = model(batch)
    loss = output.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append((step, batch, output.detach(), [str(step * i) for i in range(2000)]))
