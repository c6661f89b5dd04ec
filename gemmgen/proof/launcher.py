"""Checks of an emitted text's launcher against the interface: the grid, the arguments, and the
calls that it refuses.

Called alone, it launches no kernel, so its arguments may be of any size.  Runs of the text go
through the launcher, too, and show that the kernel works with these arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.record import record
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_attribute import bits_of_attributes
from gemmgen.ir.requirement import Aligned
from gemmgen.pipeline import Emitted
from gemmgen.proof.launcher_arguments import calls
from gemmgen.proof.launcher_maps import KeptMaps, maps_difference
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.launcher_calls import MAX_DYNAMIC_SHARED, Called, LauncherCall, bits_of
from gemmgen.sim.run import CompiledKernel

SUCCESS, INVALID_VALUE, INVALID_CONFIGURATION, MISALIGNED, NOT_SUPPORTED = 0, 1, 9, 716, 801
NAMES = {
    SUCCESS: "cudaSuccess",
    INVALID_VALUE: "cudaErrorInvalidValue",
    INVALID_CONFIGURATION: "cudaErrorInvalidConfiguration",
    MISALIGNED: "cudaErrorMisalignedAddress",
    NOT_SUPPORTED: "cudaErrorNotSupported",
}
_ALWAYS_THERE = 48 * 1024


@record
class ExpectedReturn:
    """The expected result of a call: an error, and whether it launches."""

    error: int
    launches: bool


def complaint(emitted: Emitted, text: str, kernel: CompiledKernel) -> str | None:
    """A sentence about what is wrong with the launcher of ``text``, from which ``kernel`` was
    compiled, or None."""
    name = f"launch_{emitted.name}"
    if not kernel.has_launcher:
        return f"the text has no {name}"
    made = tuple(calls(emitted))
    try:
        answers = kernel.call_launcher([call for _, call in made])
    except KernelFailure as failure:
        return f"{name}: {failure}"
    kept = KeptMaps(emitted.interface)
    for (purpose, call), called in zip(made, answers, strict=True):
        wrong = _difference(emitted.interface, call, called)
        encodings = _encodings(emitted.interface, call, kept)
        if wrong is None and called.encodings != encodings:
            wrong = f"encodes {called.encodings} tensor maps, although {encodings} are not kept"
        if wrong is not None:
            return f"{name}, {purpose}: {wrong}"
    return None


def expected(interface: Interface, values: Mapping[str, int | float]) -> ExpectedReturn:
    """The expected result by the interface."""
    numbers = _integers(values)
    broken = interface.violated(numbers)
    if any(numbers[name] < 0 for name in interface.extent_names()):
        return ExpectedReturn(INVALID_VALUE, False)
    if any(not isinstance(r, Aligned) for r in broken):
        return ExpectedReturn(INVALID_VALUE, False)
    if broken or any(numbers[p.name] % p.align for p in interface.scratch if p.align > 4):
        return ExpectedReturn(MISALIGNED, False)
    if interface.is_too_large(numbers):
        return ExpectedReturn(INVALID_CONFIGURATION, False)
    return ExpectedReturn(SUCCESS, interface.grid(numbers) > 0)


def _difference(interface: Interface, call: LauncherCall, called: Called) -> str | None:
    want = expected(interface, call.values)
    map_error = _map_error(call) if want.launches else SUCCESS
    early = call.device_error or call.attribute_error or call.count_error or map_error
    error = early or call.launch_error or want.error
    launches = want.launches and error == SUCCESS
    if called.error != error:
        why = f" (cuTensorMapEncodeTiled: {called.refusal})" if called.refusal else ""
        return f"returns {_name(called.error)}, not {_name(error)}{why}"
    if called.launches != launches:
        return f"launches {called.launches} times, not {int(launches)}"
    if not called.is_kernel:
        return "names another function than the kernel"
    if want.launches and not early and called.errors_taken != 1:
        return f"gets the launch's error {called.errors_taken} times, not once"
    if call.is_set_up and called.questions:
        return f"queries the device {called.questions} times, although an earlier call did"
    return _launch_difference(interface, call, called) if launches else None


def _map_error(call: LauncherCall) -> int:
    """The launcher's return value if the driver encodes no tensor map."""
    return call.entry_error or (NOT_SUPPORTED if call.no_entry else call.map_error)


def _encodings(interface: Interface, call: LauncherCall, kept: KeptMaps) -> int:
    """How many tensor maps the call encodes, if the calls before have left it the maps ``kept``."""
    early = call.device_error or call.attribute_error or call.count_error or call.entry_error
    if early or call.no_entry or not expected(interface, call.values).launches:
        return 0
    refused = call.refused_map if call.map_error else None
    return kept.encodings(_integers(_passed(interface, call.values)), refused)


def _launch_difference(interface: Interface, call: LauncherCall, called: Called) -> str | None:
    numbers = _integers(call.values)
    dynamic = interface.dynamic_shared
    attribute = (MAX_DYNAMIC_SHARED, dynamic)
    asks = dynamic > _ALWAYS_THERE and call.device is None
    if asks and (called.attribute != attribute or called.attribute_late):
        return f"does not ask for {dynamic} bytes of shared memory before it launches"
    wanted = {
        "a grid": ((interface.grid(numbers, call.multiprocessors), 1, 1), called.grid),
        "blocks": ((*interface.block, 1), called.block),
    }
    for what, (want, got) in wanted.items():
        if got != want:
            return f"launches {what} of {_spelled(got)}, not {_spelled(want)}"
    if called.shared != dynamic:
        return f"passes {called.shared} bytes of dynamic shared memory, not {dynamic}"
    if called.launch_attributes != bits_of_attributes(interface.attribute):
        return f"sets other launch attributes than it should: {interface.attribute or 'none'}"
    if called.stream != call.stream:
        return f"launches on stream {called.stream:#x}, not {call.stream:#x}"
    passed = _passed(interface, call.values)
    for param, got in zip(interface.kernel_params, called.arguments, strict=True):
        if param.kind != "map" and got != bits_of(param, passed[param.name]):
            return f"does not pass {param.name} in its position"
    return maps_difference(interface, _integers(passed), called.maps)


def _passed(interface: Interface, values: Mapping[str, int | float]) -> Mapping[str, int | float]:
    """The kernel's arguments: K = 0 if the product is multiplied by 0."""
    scalars = {p.name: float(values[p.name]) for p in interface.scalars}
    if interface.product is None or not interface.skips_product(scalars):
        return values
    return {**values, interface.product[1]: 0}


def _integers(values: Mapping[str, int | float]) -> dict[str, int]:
    """The extents, leading dimensions, strides and addresses among a call's values."""
    return {name: value for name, value in values.items() if isinstance(value, int)}


def _spelled(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


def _name(error: int) -> str:
    return NAMES.get(error, f"error {error}")
