"""`python -m oomrec …` is the command `oomrec …`, and what it starts in Python is this Python."""

import sys

from oomrec._library import exec_command

exec_command(sys.argv[1:])
