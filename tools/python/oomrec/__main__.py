"""python -m oomrec …: the oomrec command."""

import sys

from oomrec._library import exec_command

exec_command(sys.argv[1:])
