"""Starts workers that are killed, and prints the exceptions' classification. Arguments: HOW MEMORY.

HOW: `pool` (concurrent.futures), `process` (subprocess with check=True), `loader` (DataLoader).
MEMORY: `grow` until the kernel kills it, or `kill` for a SIGKILL that has nothing to do with memory.
"""

import os
import signal
import subprocess
import sys


def end(memory: str) -> None:
    held = [bytearray(b"x" * (1 << 20)) for _ in range(24)]  # enough to leave a bundle
    if memory == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")  # where the kernel has to choose, it is this one
    while True:
        held.append(bytearray(b"x" * (1 << 20)))


def start(how: str, memory: str) -> None:
    if how == "pool":
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(1) as pool:
            pool.submit(end, memory).result()
    elif how == "process":
        subprocess.run([sys.executable, __file__, "worker", memory], check=True)
    else:
        from torch.utils.data import DataLoader

        class Samples(list):
            def __getitem__(self, index: int) -> int:
                end(memory)
                return 0

        list(DataLoader(Samples([0]), num_workers=1))


if __name__ == "__main__":
    how, memory = sys.argv[1:]
    if how == "worker":
        end(memory)
    from oomrec.classify import classify_oom_exception

    try:
        start(how, memory)
    except Exception as error:
        print(type(error).__name__, classify_oom_exception(error))
