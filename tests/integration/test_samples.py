"""Small blocks in sampled mode: the estimates of their holders add up to the heap's exact total."""

from __future__ import annotations

import pytest
from conftest import built

BLOCKS = 120_000
SOURCE = f"""#include <stdlib.h>
    #include <string.h>
    static void* keep[2 * {BLOCKS}];
    __attribute__((noinline)) void hold_many(size_t bytes) {{
      for (int i = 0; i < {BLOCKS}; ++i) memset(keep[i] = malloc(bytes), 1, bytes);
    }}
    __attribute__((noinline)) void hold_few(size_t bytes) {{
      for (int i = 0; i < {BLOCKS} / 4; ++i) memset(keep[{BLOCKS} + i] = malloc(bytes), 1, bytes);
    }}
    int main(int count, char** words) {{
      hold_many(atol(words[1]));
      if (count > 2) hold_few(atol(words[1]));
      return keep[0] == keep[1];
    }}"""


@pytest.fixture
def held(preload, oomrec, tmp_path):
    """held(BYTES, …) is the bytes of each function's holder, of blocks that take up BYTES + 8."""
    program = built(tmp_path, "holds", SOURCE, "-g")

    def run(*words) -> dict[str, int]:
        done = preload(program, *words, env={"OOMREC_DUMP_AT_EXIT": "1"})
        shown = oomrec.json("show", done.bundles()[0])
        rows = {}
        for holder in shown["holders"]:
            for frame in holder["stack"]:
                if (frame["function"] or "").startswith("hold_"):
                    assert holder["estimated"]
                    rows[frame["function"]] = holder["bytes"]
        return rows

    return run


@pytest.mark.parametrize("bytes", [504, 1000, 2008])
def test_a_holder_of_nearly_everything_has_nearly_all_bytes(held, bytes):
    """By samples alone it is off by 3 to 10 %. Figures of the peak are taken at steps of 1 %."""
    assert held(bytes)["hold_many"] == pytest.approx(BLOCKS * bytes, rel=0.012)


def test_two_holders_share_what_is_exact(held):
    rows = held(1000, "both")
    assert sum(rows.values()) == pytest.approx(BLOCKS * 1.25 * 1000, rel=0.012)
    assert rows["hold_many"] == pytest.approx(BLOCKS * 1000, rel=0.12)
