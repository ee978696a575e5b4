"""A launcher of two ranks, each given as one argument with program and arguments. When the second
fails, it ends the first, like real launchers."""

import subprocess
import sys

first, second = (words.split() for words in sys.argv[1:])
hangs = subprocess.Popen(first, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(hangs.stdout.readline(), end="", flush=True)
sys.stdin.readline()
failed = subprocess.run(second)
hangs.terminate()
hangs.wait()
sys.exit(failed.returncode)
