"""A DataLoader of two workers, one of which grows until it is killed."""

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Samples(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if get_worker_info().id == 1:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")  # where the kernel has to choose, it is this one
            held = []
            while True:
                held.append(bytearray(b"x" * (1 << 20)))  # grows here
        return torch.zeros(4)


for _ in DataLoader(Samples(), batch_size=4, num_workers=2):
    pass
