"""python -m oomrec.gpumemprof …"""

from oomrec.gpumemprof.cli import main

main()
