"""identify.py VENDOR: prints the devices and the driver's version."""

import ctypes
import re
import sys
from ctypes import c_int

import driver as drivers
from say import say


def release():
    """The kernel driver's version, in its vendor's numbering."""
    try:
        with open("/proc/driver/nvidia/version") as version:
            return re.search(r"\b\d+\.\d+(\.\d+)?\b", version.read()).group()
    except (OSError, AttributeError):
        pass
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0:
            return text.value.decode(errors="replace")
    except (OSError, AttributeError):
        pass
    return None


def main():
    vendor = sys.argv[1]
    driver = drivers.Driver(vendor)
    devices = []
    for device in range(driver.devices()):
        driver.select(device)
        free, total = driver.free_and_total()
        name, uuid = driver.name(device), driver.uuid(device)
        devices.append({"name": name, "uuid": uuid, "free": free, "total": total})
    say(
        library=drivers.path_of(vendor),
        version=driver.given("driver_version", out=c_int),
        release=release() if vendor == "cuda" else None,
        simulated=driver.is_simulated,
        devices=devices,
    )


main()
