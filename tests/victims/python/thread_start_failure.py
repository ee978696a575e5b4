"""A thread that fails to start at the task limit. Root is exempt, so it becomes nobody."""

import os
import resource
import threading

resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
if os.geteuid() == 0:
    os.setuid(65534)
try:
    threading.Thread(target=print).start()
except RuntimeError as error:
    print(error)
