"""A GPU's driver by ctypes: the CUDA driver and the HIP runtime under the same names.

Both take the same arguments in the same order; what one of them does not read is 0. Needs Python's
own library only: this runs on any machine with a driver.
"""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from say import skip

MIB = 1 << 20
OUT_OF_MEMORY = 2  # in both

LIBRARIES = {
    "cuda": ["libcuda.so.1"],
    # The one without a number first: a machine may have several releases, and not each knows its devices.
    "hip": ["libamdhip64.so", *(f"libamdhip64.so.{version}" for version in (7, 6, 5))],
}

# Our name: the function of the CUDA driver and of HIP. None: it does not exist.
FUNCTIONS = {
    "init": ("cuInit", "hipInit"),
    "driver_version": ("cuDriverGetVersion", "hipDriverGetVersion"),
    "count_devices": ("cuDeviceGetCount", "hipGetDeviceCount"),
    "device_name": ("cuDeviceGetName", "hipDeviceGetName"),
    "device_uuid": ("cuDeviceGetUuid", "hipDeviceGetUuid"),
    "memory_info": ("cuMemGetInfo_v2", "hipMemGetInfo"),
    "synchronize": ("cuCtxSynchronize", "hipDeviceSynchronize"),
    "retain_context": ("cuDevicePrimaryCtxRetain", None),
    "select_context": ("cuCtxSetCurrent", None),
    "create_context": ("cuCtxCreate_v2", None),
    "destroy_context": ("cuCtxDestroy_v2", None),
    "select_device": (None, "hipSetDevice"),
    # memory
    "allocate": ("cuMemAlloc_v2", "hipMalloc"),
    "allocate_pitched": ("cuMemAllocPitch_v2", "hipMallocPitch"),
    "allocate_managed": ("cuMemAllocManaged", "hipMallocManaged"),
    "free": ("cuMemFree_v2", "hipFree"),
    "allocate_host": ("cuMemHostAlloc", "hipHostMalloc"),
    "free_host": ("cuMemFreeHost", "hipHostFree"),
    "copy_in": ("cuMemcpyHtoD_v2", "hipMemcpyHtoD"),
    "copy_out": ("cuMemcpyDtoH_v2", "hipMemcpyDtoH"),
    # streams, pools and graphs
    "create_stream": ("cuStreamCreate", "hipStreamCreateWithFlags"),
    "allocate_ordered": ("cuMemAllocAsync", "hipMallocAsync"),
    "allocate_from_pool": ("cuMemAllocFromPoolAsync", "hipMallocFromPoolAsync"),
    "free_ordered": ("cuMemFreeAsync", "hipFreeAsync"),
    "wait": ("cuStreamSynchronize", "hipStreamSynchronize"),
    "create_pool": ("cuMemPoolCreate", "hipMemPoolCreate"),
    "set_pool": ("cuMemPoolSetAttribute", "hipMemPoolSetAttribute"),
    "trim_pool": ("cuMemPoolTrimTo", "hipMemPoolTrimTo"),
    "destroy_pool": ("cuMemPoolDestroy", "hipMemPoolDestroy"),
    "begin_capture": ("cuStreamBeginCapture_v2", "hipStreamBeginCapture"),
    "end_capture": ("cuStreamEndCapture", "hipStreamEndCapture"),
    "instantiate": ("cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"),
    "launch": ("cuGraphLaunch", "hipGraphLaunch"),
    "destroy_executable": ("cuGraphExecDestroy", "hipGraphExecDestroy"),
    "destroy_graph": ("cuGraphDestroy", "hipGraphDestroy"),
    # virtual memory
    "granularity": ("cuMemGetAllocationGranularity", "hipMemGetAllocationGranularity"),
    "create_memory": ("cuMemCreate", "hipMemCreate"),
    "release_memory": ("cuMemRelease", "hipMemRelease"),
    "reserve": ("cuMemAddressReserve", "hipMemAddressReserve"),
    "unreserve": ("cuMemAddressFree", "hipMemAddressFree"),
    "map": ("cuMemMap", "hipMemMap"),
    "unmap": ("cuMemUnmap", "hipMemUnmap"),
    "set_access": ("cuMemSetAccess", "hipMemSetAccess"),
    # code
    "load_module": ("cuModuleLoadData", "hipModuleLoadData"),
    "find_kernel": ("cuModuleGetFunction", "hipModuleGetFunction"),
    "launch_kernel": ("cuLaunchKernel", "hipModuleLaunchKernel"),
}


class Driver:
    def __init__(self, vendor):
        self.vendor = vendor
        self.library = open_library(vendor)
        self.must("init", 0)

    @property
    def is_simulated(self):
        return hasattr(self.library, "fake_gpu_reset")

    def __call__(self, word, *arguments):
        """Calls the function and returns its result code."""
        name = FUNCTIONS[word][self.vendor == "hip"]
        if name is None or not hasattr(self.library, name):
            skip(f"the driver has no {name or word}")
        function = getattr(self.library, name)
        return function(
            *(c_size_t(value) if isinstance(value, int) else value for value in arguments)
        )

    def must(self, word, *arguments):
        result = self(word, *arguments)
        if result != 0:
            raise SystemExit(f"{FUNCTIONS[word][self.vendor == 'hip']} returned {result}")

    def given(self, word, *arguments, out=c_uint64):
        """Calls the function and returns what it writes to its first argument."""
        value = out()
        self.must(word, byref(value), *arguments)
        return value.value

    def asked(self, word, *arguments):
        """The same for a function that may fail: None, with the code in `result`."""
        value = c_uint64()
        self.result = self(word, byref(value), *arguments)
        return value.value if self.result == 0 else None

    # --- devices

    def devices(self):
        return self.given("count_devices", out=c_int)

    def select(self, device):
        """Makes the device's primary context current on this thread."""
        if self.vendor == "hip":
            self.must("select_device", device)
        else:
            self.must("select_context", c_void_p(self.given("retain_context", device)))

    def free_and_total(self):
        free, total = c_size_t(), c_size_t()
        self.must("memory_info", byref(free), byref(total))
        return free.value, total.value

    def name(self, device):
        text = ctypes.create_string_buffer(128)
        self.must("device_name", text, 128, device)
        return text.value.decode(errors="replace")

    def uuid(self, device):
        data = (ctypes.c_uint8 * 16)()
        self.must("device_uuid", data, device)
        return bytes(data).hex()

    def pool_location(self, device):
        """Properties of a pool or of physical memory: pinned memory of the device."""
        return (c_int * 32)(1, 0, 1, device)

    def device_access(self, device):
        return (c_int * 3)(1, device, 3)  # read and write access by the device


def open_library(vendor):
    for name in LIBRARIES[vendor]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise SystemExit(f"no {LIBRARIES[vendor][0]} here")


def path_of(vendor):
    """The path of the loaded library."""
    wanted = LIBRARIES[vendor][-1].split(".so")[0]
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if path.rpartition("/")[2].startswith(f"{wanted}.so"):
                return "/" + path
    return None
