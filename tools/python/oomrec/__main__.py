"""`python -m oomrec …` runs the command `oomrec …`, which starts Python programs with this interpreter."""

import sys

from oomrec._impl.command import exec_command

exec_command(sys.argv[1:])
