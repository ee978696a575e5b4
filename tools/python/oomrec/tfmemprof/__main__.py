"""python -m oomrec.tfmemprof …"""

from oomrec.tfmemprof.cli import main

main()
