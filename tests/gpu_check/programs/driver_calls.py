"""driver_calls.py VENDOR WHAT [BYTES]: calls the driver like programs, and prints what it holds.

Each function below is one WHAT. None takes more than a few dozen MiB, except `fill`, which takes
what is free or BYTES, whichever is less, by plain allocations, and gives all of it back.
"""

import ctypes
import os
import sys
import threading
import time
from ctypes import byref, c_size_t, c_void_p

from driver import MIB, OUT_OF_MEMORY, Driver
from say import mark, say, skip


def blocks(driver):
    """Each kind of plain memory, with unique sizes."""
    sizes = [3 * MIB + 512, 5 * MIB, 7 * MIB]
    held = [driver.given("allocate", size) for size in sizes]
    managed = driver.given("allocate_managed", 2 * MIB, 1)
    rows, pitch, pitched = 1000, c_size_t(), ctypes.c_uint64()
    driver.must("allocate_pitched", byref(pitched), byref(pitch), 1001, rows, 4)
    host = driver.given("allocate_host", 6 * MIB, 0)
    device = sum(sizes) + 2 * MIB + pitch.value * rows
    mark("all", device=device, host=6 * MIB)
    driver.must("free", c_void_p(held.pop(1)))
    driver.must("free_host", c_void_p(host))
    mark("some", device=device - 5 * MIB, host=0)
    for block in [*held, managed, pitched.value]:
        driver.must("free", c_void_p(block))
    mark("none", device=0, host=0)


def fragments(driver):
    """Frees every second of many blocks."""
    held = [driver.given("allocate", 2 * MIB) for _ in range(16)]
    for block in held[::2]:
        driver.must("free", c_void_p(block))
    mark("half", device=8 * 2 * MIB)
    for block in held[1::2]:
        driver.must("free", c_void_p(block))
    mark("none", device=0)


def contents(driver):
    """Copies data in and out, and compares."""
    block = driver.given("allocate", MIB)
    sent = bytes(range(256)) * (MIB // 256)
    came = ctypes.create_string_buffer(MIB)
    driver.must("copy_in", c_void_p(block), sent, MIB)
    driver.must("copy_out", came, c_void_p(block), MIB)
    say(same=came.raw == sent, refused_code=driver("allocate", byref(c_void_p()), 1 << 60))
    driver.must("free", c_void_p(block))


def pools(driver):
    """Stream-ordered memory of the device's pool and of a new one."""
    stream = c_void_p(driver.given("create_stream", 1))
    first = driver.given("allocate_ordered", 4 * MIB, stream)
    pool = c_void_p(driver.given("create_pool", driver.pool_location(0)))
    second = driver.given("allocate_from_pool", 6 * MIB, pool, stream)
    driver.must("wait", stream)
    mark("both", device=10 * MIB)
    driver.must("free_ordered", c_void_p(first), stream)
    driver.must("wait", stream)
    mark("one", device=6 * MIB)
    driver.must("free", c_void_p(second))  # not stream-ordered, but allowed
    driver.must("synchronize")
    driver.must("trim_pool", pool, 0)
    mark("none", device=0)
    driver.must("destroy_pool", pool)


def virtual_memory(driver):
    """Virtual memory: physical memory is freed once it is unmapped *and* released."""
    where = driver.pool_location(0)
    size = max(driver.given("granularity", where, 0, out=c_size_t), 2 * MIB)
    address = driver.given("reserve", 4 * size, 0, 0, 0)
    mark("reserved", device=0, address=4 * size)
    memory = c_void_p(driver.given("create_memory", size, where, 0))
    for part in (0, 2):  # mapped twice, counted once
        driver.must("map", c_void_p(address + part * size), size, 0, memory, 0)
        driver.must("set_access", c_void_p(address + part * size), size, driver.device_access(0), 1)
    mark("mapped", device=size, address=4 * size)
    driver.must("release_memory", memory)
    driver.must("unmap", c_void_p(address), size)
    mark("half", device=size, address=4 * size)
    driver.must("unmap", c_void_p(address + 2 * size), size)
    driver.must("unreserve", c_void_p(address), 4 * size)
    mark("none", device=0, address=0)


def graphs(driver):
    """A captured allocation belongs to the graph, and is live from the launch on."""
    stream = c_void_p(driver.given("create_stream", 1))
    driver.must("begin_capture", stream, 2)
    block = driver.given("allocate_ordered", 8 * MIB, stream)
    graph = c_void_p()
    driver.must("end_capture", stream, byref(graph))
    executable = c_void_p(driver.given("instantiate", graph, 0))
    mark("captured", device=0)
    driver.must("launch", executable, stream)
    driver.must("wait", stream)
    mark("launched", device=8 * MIB)
    driver.must("free_ordered", c_void_p(block), stream)
    driver.must("wait", stream)
    mark("freed", device=0)
    driver.must("destroy_executable", executable)
    driver.must("destroy_graph", graph)


def contexts(driver):
    """Memory of a context is freed with it."""
    before = driver.given("allocate", 4 * MIB)
    context = c_void_p(driver.given("create_context", 0, 0))
    driver.given("allocate", 8 * MIB)
    mark("both", device=12 * MIB)
    driver.must("destroy_context", context)
    mark("first", device=4 * MIB)
    driver.select(0)
    driver.must("free", c_void_p(before))
    mark("none", device=0)


def threads(driver):
    """Eight threads at once."""

    def work():
        driver.select(0)
        for _ in range(100):
            driver.must("free", c_void_p(driver.given("allocate", 64 << 10)))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    mark("none", device=0)


def forked(driver):
    """A forked child has no device memory, and does not call the driver."""
    block = driver.given("allocate", 4 * MIB)
    child = os.fork()
    if child == 0:
        held = [bytearray(MIB) for _ in range(8)]  # enough to be recorded
        mark("child", device=0)
        os._exit(len(held) - 8)
    say(child_status=os.waitpid(child, 0)[1])
    mark("parent", device=4 * MIB)
    driver.must("free", c_void_p(block))


def devices(driver):
    """A free counts on the device that allocated, whichever is current."""
    if driver.devices() < 2:
        skip("one device here")
    first = driver.given("allocate", 4 * MIB)
    driver.select(1)
    second = driver.given("allocate", 8 * MIB)
    mark("both", device=12 * MIB)
    driver.must("free", c_void_p(first))
    mark("second", device=8 * MIB)
    driver.must("free", c_void_p(second))


# c[i] = a[i] + 1, one thread each.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry increment(.param .u64 data)
{
  .reg .u64 %rd<4>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
"""


def kernels(driver):
    """Runs a kernel, which the driver may compile first."""
    if driver.is_simulated:
        skip("a simulated device runs no kernels")
    if driver.vendor != "cuda":
        skip("no kernel of ours for this driver")
    module = c_void_p(driver.given("load_module", PTX))
    kernel = c_void_p(driver.given("find_kernel", module, b"increment"))
    numbers = (ctypes.c_uint32 * 256)(*range(256))
    block = c_void_p(driver.given("allocate", ctypes.sizeof(numbers)))
    driver.must("copy_in", block, numbers, ctypes.sizeof(numbers))
    values = (c_void_p * 1)(ctypes.addressof(block))
    driver.must("launch_kernel", kernel, 1, 1, 1, 256, 1, 1, 0, None, values, None)
    driver.must("synchronize")
    driver.must("copy_out", numbers, block, ctypes.sizeof(numbers))
    say(same=list(numbers) == list(range(1, 257)))


def cost(driver):
    """Nanoseconds of an allocation and its free, the median of a hundred."""
    times = []
    for _ in range(100):
        before = time.perf_counter_ns()
        driver.must("free", c_void_p(driver.given("allocate", 2 * MIB)))
        times.append(time.perf_counter_ns() - before)
    say(pair_ns=sorted(times)[50])


def take(driver, size):
    return driver.asked("allocate", size)


def step_for(free):
    """The size of blocks of which a device holds a few."""
    return min(256 * MIB, free // 16 // (2 * MIB) * 2 * MIB)


def context_on_full(driver):
    """A context needs memory, too."""
    step = step_for(driver.free_and_total()[0])
    while take(driver, step) is not None:
        pass
    say(context_result=driver("create_context", byref(c_void_p()), 0, 0))


def fill(driver):
    """Fills the device; then retries with less."""
    free, total = driver.free_and_total()
    step = step_for(free)
    bound = min(free, int(sys.argv[3])) if len(sys.argv) > 3 else free
    held = []
    while len(held) * step <= bound:
        block = take(driver, step)
        if block is None:
            break
        held.append(block)
    result, left = driver.result, driver.free_and_total()[0]
    mark("full", device=len(held) * step)
    say(step=step, refused=result == OUT_OF_MEMORY, result=result, free=left, total=total)
    driver.must("free", c_void_p(held.pop()))
    again = take(driver, step)
    say(again=driver.result)
    if again is not None:
        held.append(again)
    for block in held:
        driver.must("free", c_void_p(block))
    mark("none", device=0)


def exceed(driver):
    """A single block larger than the device."""
    driver.given("allocate", 16 * MIB)
    take(driver, driver.free_and_total()[1] + MIB)
    say(result=driver.result)
    sys.exit(3)


def hold(driver):
    """Another process on the device until its stdin ends."""
    driver.given("allocate", 64 * MIB)
    say(held=64 * MIB)
    sys.stdin.read()


def main():
    driver = Driver(sys.argv[1])
    driver.select(0)
    globals()[sys.argv[2]](driver)


main()
