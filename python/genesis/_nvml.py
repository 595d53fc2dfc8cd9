"""What NVIDIA's management library (NVML) says about a device."""

from __future__ import annotations

import ctypes

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis.cuda import DeviceLike

__all__ = ["utilization"]

_FILE = "libnvidia-ml.so.1"
_library: Any = None


class _Rates(ctypes.Structure):
    """nvmlUtilization_t: percent of the time since the last sample."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def _call(name: str, *arguments: Any) -> None:
    error = getattr(_library, name)(*arguments)
    if error:
        raise RuntimeError(f"utilization: {name} failed with error {error}")


def utilization(device: DeviceLike = None) -> int:
    """Percent of the last moments in which a kernel ran on a device, by any process.

    Raises
    ------
    RuntimeError
        If CUDA cannot be used, or NVIDIA's management library is not there.
    """
    global _library
    bus = _C.device_properties(device)["pci_bus_id"]
    if not bus:
        raise ValueError("utilization: the device is a CUDA device")
    if _library is None:
        try:
            library = ctypes.CDLL(_FILE)
        except OSError as error:
            raise RuntimeError(f"utilization: NVML cannot be loaded: {error}") from None
        library.nvmlInit_v2()
        _library = library
    handle, rates = ctypes.c_void_p(), _Rates()
    _call("nvmlDeviceGetHandleByPciBusId_v2", bus.encode(), ctypes.byref(handle))
    _call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates))
    return rates.gpu
