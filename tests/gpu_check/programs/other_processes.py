"""The processes on the devices, according to NVML."""

import ctypes
from ctypes import byref, c_uint, c_ulonglong, c_void_p

from say import say, skip


class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("bytes", c_ulonglong), ("gpu", c_uint), ("compute", c_uint)]


def main():
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        skip("no libnvidia-ml.so.1 here")
    if nvml.nvmlInit_v2() != 0:
        skip("NVML does not start")
    devices, found = c_uint(), []
    nvml.nvmlDeviceGetCount_v2(byref(devices))
    for index in range(devices.value):
        device, count, processes = c_void_p(), c_uint(64), (Process * 64)()
        nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(device))
        if nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(count), processes) == 0:
            found += [process.pid for process in processes[: count.value]]
    say(processes=found)


main()
