"""Whether the kernel's kill of a real package's program names its line: killed_lines.py OOMREC PYTHON [NAME…].

Each program keeps memory by one line, and then grows by another one until its cgroup is full: a little later, so that what
the line's holders have at the end is known from the program's own anonymous memory. Needs root, a memory cgroup and
the packages, which are installed for PYTHON; what cannot be imported is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from memory_cgroup import MemoryCgroup

MIB = 1 << 20
# By name: what comes before, and what keeps the memory. The last words of the first line are the packages.
PROGRAMS = {
    "numpy": ("import numpy as np", "[np.ones(4 << 17) for _ in range(50)]"),
    "scipy_sparse": (
        "import numpy as np, scipy.sparse as sp\na = sp.random(20000, 20000, 0.002, 'csr', rng=0)",
        "a @ a",
    ),
    "opencv": (
        "import numpy as np, cv2\nimage = np.zeros((2000, 2000, 3), np.uint8)",
        "[cv2.GaussianBlur(cv2.resize(image, (2500, 2500)), (5, 5), 0) for _ in range(12)]",
    ),
    "pillow": (
        "from PIL import Image, ImageFilter\nimage = Image.new('RGBA', (2000, 2000), 'red')",
        "[image.rotate(i).filter(ImageFilter.BLUR) for i in range(14)]",
    ),
    "lxml": (
        "from lxml import etree\ntext = b'<r>' + b'<i><name>x</name></i>' * 500000 + b'</r>'",
        "etree.fromstring(text)",
    ),
    "h5py": (
        "import h5py, numpy as np\nf = h5py.File('x.h5', 'w')\n"
        "d = f.create_dataset('d', (50, 512, 1024), chunks=(1, 512, 1024), compression='gzip')\n"
        "for i in range(50): d[i] = np.ones((512, 1024), np.float32)",
        "[d[i].astype(np.float64) for i in range(50)]",
    ),
    "numba": (
        "import numba, numpy as np\n@numba.njit(parallel=True)\ndef fill(n):\n"
        "    a = np.empty((n, 1 << 18))\n    for i in numba.prange(n): a[i, :] = i\n    return a\nfill(1)",
        "fill(100)",
    ),
    "xgboost": (
        "import numpy as np, xgboost\nx = np.random.default_rng(0).random((300000, 60), np.float32)",
        "xgboost.DMatrix(x, nthread=4)",
    ),
    "pandas_strings": (
        "import pandas as pd\ns = pd.Series(['name %d' % (i % 1000) for i in range(3000000)])",
        "s.str.upper() + ' and a longer tail ' + s",
    ),
    "arrow_upper": (
        "import pyarrow as pa, pyarrow.compute as pc\n"
        "t = pa.chunked_array([['some string number %d' % i for i in range(200000)]] * 15)",
        "[pc.utf8_upper(t) for _ in range(2)]",
    ),
    "polars_strings": (
        "import polars as pl\nd = pl.DataFrame({'a': range(3000000)})",
        "d.with_columns(s=pl.col('a').cast(pl.String) + '_some_longer_tail_of_it')",
    ),
    "duckdb": (
        "import duckdb\nc = duckdb.connect()\nc.execute('set threads=4')",
        "c.execute(\"create table t as select i, 'row ' || (i * 7919 % 4000000) s from range(4000000) r(i)\")",
    ),
    "sqlite": (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t(a, b)')",
        "c.executemany('insert into t values (?, ?)', ((i, 'x' * 200) for i in range(800000)))",
    ),
    "objects": ("", "{i: {'name': f'n{i}', 'tags': [i, i + 1]} for i in range(500000)}"),
    "jax": (
        "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: jnp.sin(x) * 2)\nx = jnp.ones(1 << 20)\n"
        "f(x).block_until_ready()",
        "[f(x + i).block_until_ready() for i in range(50)]",
    ),
    "datafusion": (
        "import datafusion\nc = datafusion.SessionContext()",
        "c.sql(\"select value, 'row ' || value s from generate_series(1, 6000000)\").collect()",
    ),
    "rocksdb": (
        "from rocksdict import Rdict, Options\ndef fill():\n    o = Options()\n"
        "    o.set_write_buffer_size(1 << 30)\n    d = Rdict('rdb', o)\n"
        "    for i in range(200000): d[i] = b'x' * 1000\n    return d",
        "fill()",
    ),
    "skia": (
        "import skia\ndef draw(i):\n    s = skia.Surface(1024, 1024)\n    s.getCanvas().clear(i)\n"
        "    return s.makeImageSnapshot()",
        "[draw(i) for i in range(50)]",
    ),
    "vips": (
        "import pyvips\nimage = pyvips.Image.gaussnoise(3000, 3000)",
        "[(image + i).copy_memory() for i in range(6)]",
    ),
    "lua": (
        "import lupa.lua55 as lupa\nlua = lupa.LuaRuntime()",
        "lua.execute('local t = {} for i = 1, 2000000 do t[i] = {i} end return t')",
    ),
    "rdkit": (
        "from rdkit import Chem",
        "[Chem.MolFromSmiles('CC(=O)OC1=CC=CC=C1C(=O)O') for _ in range(30000)]",
    ),
    "shapely": (
        "import numpy as np, shapely\nx = np.arange(600000.0)",
        "shapely.box(x, x, x + 1, x + 1)",
    ),
    "kuzu": (
        "import kuzu\nc = kuzu.Connection(kuzu.Database(':memory:'))\n"
        "c.execute('create node table t(i int64, s string, primary key (i))')",
        "c.execute(\"unwind range(1, 1000000) as i create (:t {i: i, s: 'row ' + cast(i as string)})\")",
    ),
    "subinterpreter": (
        "import _interpreters\nother = _interpreters.create()",
        "_interpreters.exec(other, 'kept = [(i, str(i)) for i in range(1500000)]')",
    ),
    "mmap_shared": (
        "import mmap\ndef filled():\n    m = mmap.mmap(-1, 200 << 20)\n"
        "    for i in range(0, 200 << 20, 4096): m[i] = 1\n    return m",
        "filled()",
    ),
    "mmap_resized": (
        "import mmap\ndef filled():\n"
        "    m = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "    for i in range(200):\n        m.resize(i + 1 << 20)\n"
        "        m[i << 20 : i + 1 << 20] = b'x' * (1 << 20)\n    return m",
        "filled()",
    ),
    "shared_memory": (
        "from multiprocessing import shared_memory\ndef filled():\n"
        "    s = shared_memory.SharedMemory(create=True, size=200 << 20)\n"
        "    for i in range(0, 200 << 20, 1 << 20): s.buf[i:i + (1 << 20)] = b'x' * (1 << 20)\n"
        "    s.unlink()\n    return s",
        "filled()",
    ),
}
PROGRAM = """
{before}
import ctypes, gc, os
def status():
    with open("/proc/self/status") as file:
        words = (line.split() for line in file)
        return {{w[0]: int(w[1]) << 10 for w in words if w[0] in ("VmHWM:", "RssFile:", "RssAnon:", "RssShmem:")}}
def anonymous():
    now = status()
    return now["RssAnon:"] + now["RssShmem:"]
def keep():
    return {what}
def finish():
    if "PEAK_ONLY" in os.environ:
        now = status()
        print(max(now["VmHWM:"] - now["RssFile:"], now["RssAnon:"] + now["RssShmem:"]))
        os._exit(0)
    kept = []
    for i in range(1 << 20):
        kept.append(bytearray(b"x") * (2 << 20))
        os.pwrite(1, b"%-20d" % (anonymous() - base - (2 << 20) * len(kept)), 0)
base = anonymous()
kept = keep()
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
finish()
"""


def run(oomrec: str, python: str, name: str) -> str:
    """The row of one program."""
    before, what = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        program, truth = directory / f"keeps_{name}.py", directory / "truth"
        program.write_text(PROGRAM.format(before=before, what=what))
        words = [python, str(program)]
        probe = subprocess.run(
            words, env=os.environ | {"PEAK_ONLY": "1"}, cwd=directory, capture_output=True
        )
        if probe.returncode != 0:
            return f"| {name} | {probe.stderr.decode().splitlines()[-1]} |"
        group = MemoryCgroup(f"killed_lines_{os.getpid()}", f"{int(probe.stdout) // MIB + 90}M")
        try:
            with truth.open("w") as file:
                done = subprocess.run(
                    [oomrec, "run", "--dump-dir", str(directory), "--", *words],
                    stdout=file, stderr=subprocess.PIPE, cwd=directory, preexec_fn=group.enter,
                )  # fmt: skip
        finally:
            group.remove()
        bundles = sorted(directory.glob("oom_*"))
        shown = json.loads(subprocess.check_output([oomrec, "show", "--json", bundles[-1]]))
        of_line = sum(
            holder["resident_bytes"]
            for holder in shown["holders"]
            if any(frame["function"] == "keep" for frame in holder["stack"])
        )
        kept = int(truth.read_text())
        largest = re.findall(r"was killed.*largest holder: (.*)", done.stderr.decode())
        return (
            f"| {name} | {kept // MIB} MiB | {of_line // MIB} MiB"
            f" | {largest[-1] if largest else done.stderr.decode()} |"
        )


def main() -> None:
    oomrec, python, *names = sys.argv[1:]
    for name in names or PROGRAMS:
        print(run(os.path.abspath(oomrec), python, name), flush=True)


if __name__ == "__main__":
    main()
