"""`python -m oomrec …` is the command `oomrec …`, and what it starts in Python is this Python."""

import os
import sys

from oomrec._library import exec_command

os.environ["OOMREC_PYTHON"] = sys.executable
exec_command(sys.argv[1:])
