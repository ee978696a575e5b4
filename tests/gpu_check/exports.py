"""The driver's exports, compared with the functions that the library wraps.

Reads the driver's dynamic symbols itself: nothing needs to be installed for it.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from .outcome import Failed, Skipped

TABLES = Path(__file__).resolve().parents[2] / "shim" / "gpu"
SECTION_DYNSYM = 11
FORM = re.compile(
    r"(_v\d+)?(_ptsz|_ptds|_spt)?$"
)  # suffixes of later versions and of per-thread streams
# Names that look like allocations, and not only like queries or changes of memory.
GIVES_MEMORY = re.compile(r"^(cu|hip)\w*(Alloc|Malloc|MemCreate|PoolCreate|ArrayCreate|MemMap)")
QUERIES = re.compile(r"Get|Set[A-Z]|Query|Info|Properties|Granularity|Unmap")


def exported_names(library: str) -> set[str]:
    """Functions exported by a 64-bit little-endian ELF file."""
    with open(library, "rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise Failed(f"{library} is no 64-bit ELF file")
        (offset,) = struct.unpack_from("<Q", header, 40)
        entry_size, count = struct.unpack_from("<HH", header, 58)

        def section(index: int) -> tuple:
            file.seek(offset + index * entry_size)
            return struct.unpack("<IIQQQQIIQQ", file.read(64))

        def content(fields: tuple) -> bytes:
            file.seek(fields[4])
            return file.read(fields[5])

        names = set()
        for fields in map(section, range(count)):
            if fields[1] != SECTION_DYNSYM:
                continue
            strings = content(section(fields[6]))
            for name, _, _, home, _, _ in struct.iter_unpack("<IBBHQQ", content(fields)):
                if home != 0:  # defined here
                    names.add(strings[name : strings.index(b"\0", name)].decode())
        if not names:
            raise Skipped(f"{library} has no table of sections")
        return names


def wrapped_names(driver: str) -> dict[str, set[str]]:
    """By list of the table: "11", "12", "13" of CUDA; "", "LATER" of HIP."""
    text = (TABLES / f"{driver}_functions.h").read_text()
    lists: dict[str, set[str]] = {}
    name = None  # of another table, such as the queries
    for line in text.splitlines():
        if line.startswith("#define"):
            started = re.match(rf"#define OOMREC_{driver.upper()}_FUNCTIONS_?(\w*)\(X\)", line)
            name = started.group(1) if started else None
        for row in re.findall(r"^\s+X\((\w+),", line) if name is not None else []:
            lists.setdefault(name, set()).add(row)
    return lists


def compare(driver: str, library: str, version: int) -> tuple[str, list[str]]:
    """Returns a remark and lines of information. Fails if the driver lacks a name."""
    exported, lists = exported_names(library), wrapped_names(driver)
    wrapped = set().union(*lists.values())
    lines = []
    if driver == "cuda":
        # Each release series includes the previous one, so a missing name is misspelt.
        older = [names for series, names in lists.items() if int(series) < version // 1000]
        missing = sorted(set().union(*older) - exported)
        if missing:
            raise Failed(f"the driver does not export {', '.join(missing)}")
    absent = sorted(wrapped - exported)
    if absent:
        lines.append(f"not in this driver: {', '.join(absent)}")
    bases = {FORM.sub("", name) for name in wrapped}
    forms = sorted(name for name in exported - wrapped if FORM.sub("", name) in bases)
    if forms:
        lines.append(f"further forms of wrapped functions, not wrapped: {', '.join(forms)}")
    others = sorted(
        name
        for name in exported - wrapped - set(forms)
        if GIVES_MEMORY.match(name) and not QUERIES.search(name)
    )
    if others:
        lines.append(f"look as if they gave memory, not wrapped: {', '.join(others)}")
    return f"{len(wrapped & exported)} of {len(wrapped)} wrapped functions are exported", lines
