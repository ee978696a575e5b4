"""Writes python_line_fixtures.inc: line tables as real interpreters made them, with the lines that
the interpreter itself (PyCode_Addr2Line) gives for each instruction.

    for v in 3.8 3.9 3.10 3.11 3.12 3.13; do python$v python_line_fixtures.py; done \
        > python_line_fixtures.inc
"""

import ctypes
import sys

SOURCES = {
    "plain": "def f(a):\n    b = a + 1\n\n    return b\n",
    "call_over_lines": "def f(a, b):\n    return max(\n        a,\n        min(\n          b,\n          a),\n    )\n",
    "backwards": "def f(xs):\n    for x in xs:\n        if x:\n            continue\n        y = x\n    return y\n",
    "try_with": "def f(p):\n    try:\n        with p as q:\n            q.x()\n    except OSError as e:\n"
    "        print(e)\n    finally:\n        p.close()\n    return [z for z in p\n            if z]\n",
    "far": "def f(a):\n    a()\n"
    + "\n" * 300
    + "    a()\n"
    + "\n" * 70000
    + "    a()\n    return 1\n",
    "far_back": "def f(a):\n    return (a,\n" + "\n" * 200 + "      a()).index(\n  a)\n",
    "long": "def f(a):\n"
    + "".join("    a = a + %d ; a.b.c.d = a, a, a, a\n" % i for i in range(40)),
    "match_like": "def f(a):\n    while True:\n        if a > 3 and (a < 5 or\n             a == 7):\n            break\n        a = [\n            a, *a]\n",
    "generator": "def f(a):\n    x = yield from a\n    async_ = yield (\n       x)\n    del x\n",
}


def functions(code):
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield constant
            yield from functions(constant)


def main():
    line_at = ctypes.pythonapi.PyCode_Addr2Line
    line_at.argtypes = [ctypes.py_object, ctypes.c_int]
    for label, source in SOURCES.items():
        for code in functions(compile("\n" * 4 + source, label, "exec")):
            table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
            runs, last = [], None
            for offset in range(0, len(code.co_code), 2):
                line = line_at(code, offset)
                if line != last:
                    runs.append((offset, line))
                    last = line
            text = "".join("\\x%02x" % byte for byte in table)
            expected = ", ".join("{%d, %d}" % run for run in runs)
            print(
                '{0x%08x, "%s/%s", %d, %d, {"%s", %d}, {%s}},'
                % (
                    sys.hexversion,
                    label,
                    code.co_name,
                    code.co_firstlineno,
                    len(code.co_code),
                    text,
                    len(table),
                    expected,
                )
            )


main()
