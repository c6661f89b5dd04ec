"""Power and clock of a GPU, by NVIDIA's management library (NVML), which is part of the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager

from gemmgen.base.record import record
from gemmgen.gpu.device import cupy

LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK = 1  # NVML_CLOCK_SM
_POWER_NOW = 186  # NVML_FI_DEV_POWER_INSTANT
_LENGTH = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE


class FieldValue(ctypes.Structure):
    """``nvmlFieldValue_t``; of its union the member for unsigned numbers."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_uint),
        ("failed", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


@record
class PowerReading:
    """``power`` in watts and ``clock`` of the multiprocessors in MHz; None where the driver does
    not say."""

    power: float | None = None
    clock: int | None = None


@record
class Meter:
    """The library, and its handle of one GPU."""

    library: ctypes.CDLL
    handle: ctypes.c_void_p

    def read(self) -> PowerReading:
        """Power and clock of this moment."""
        return PowerReading(self._power(), self.clock())

    def clock(self) -> int | None:
        """Of the multiprocessors, in MHz."""
        found = ctypes.c_uint()
        kind = ctypes.c_uint(_SM_CLOCK)
        failed = self.library.nvmlDeviceGetClockInfo(self.handle, kind, ctypes.byref(found))
        return None if failed else found.value

    def driver(self) -> str:
        """The driver's version; empty if it is not known."""
        text = ctypes.create_string_buffer(_LENGTH)
        failed = self.library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_LENGTH))
        return "" if failed else text.value.decode()

    def _power(self) -> float | None:
        """Of this moment where the driver has that field; else its mean, which on GPUs since Ampere
        is that of a whole second (NVML's description of ``nvmlDeviceGetPowerUsage``)."""
        field = FieldValue(field=_POWER_NOW)
        try:
            failed = self.library.nvmlDeviceGetFieldValues(
                self.handle, ctypes.c_int(1), ctypes.byref(field)
            )
        except AttributeError:
            failed = 1
        if not failed and not field.failed:
            return (field.value & 0xFFFFFFFF) / 1000
        found = ctypes.c_uint()
        failed = self.library.nvmlDeviceGetPowerUsage(self.handle, ctypes.byref(found))
        return None if failed else found.value / 1000


@contextmanager
def meter(device: int) -> Generator[Meter | None]:
    """What reads power and clock of ``device`` (CUDA's number); None without the library."""
    library = _started()
    if library is None:
        yield None
        return
    try:
        yield _of(library, device)
    finally:
        library.nvmlShutdown()


def _started() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(LIBRARY)
        return None if library.nvmlInit_v2() else library
    except (OSError, AttributeError):
        return None


def _of(library: ctypes.CDLL, device: int) -> Meter | None:
    """CUDA and NVML number GPUs differently; the address on the bus is one for both."""
    handle = ctypes.c_void_p()
    try:
        address = str(cupy().cuda.runtime.deviceGetPCIBusId(device)).encode()
        failed = library.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(handle))
    except (AttributeError, RuntimeError):
        return None
    return None if failed else Meter(library, handle)
