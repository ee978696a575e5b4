"""`python -m oomrec.fleet …` is the command `oomrec fleet …`."""

import sys

from oomrec.fleet._cli import main

sys.exit(main(sys.argv[1:]))
