"""The translation unit that g++ compiles: an emitted text, between a header and calls of it.

The text is included byte for byte except for what is not C++: the ``asm`` statements of the
functions above the kernel are calls of models (``ptx.py``), and the launcher's one
``kernel<<<grid, ...>>>(...)`` is ``gg_configure(kernel, grid, ...)(...)``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from gemmgen.emit.ctypes import STORED
from gemmgen.emit.kernel_view import BEGIN, END
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_map import LANDS_AT
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.ptx import needs_line, translated
from gemmgen.sim.unit_maps import pass_arguments

SYMBOL = "gg_emitted_kernel"

_INTEGERS = {
    "extent": ("int", "integer"),
    "ld": ("int", "integer"),
    "stride": ("long long", "wide"),
}
"""Kinds of parameters that are integers: their types, and the members of ``GgArgument``."""

_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\(([^,()]+)(?:,([^,()]+))?[,)]")
_CLUSTER_DIMS = re.compile(r"__cluster_dims__\(([^,()]+)(?:, *1)*\)")
_DYNAMIC_SHARED = re.compile(
    r"(?:alignas\((\d+)\)\s+)?extern\s+__shared__[^;]*?(\w+)\s*\[\s*\]\s*;"
)
_NAMESPACE = re.compile(r"^namespace (\w+) \{$", re.MULTILINE)
_FUNCTION = re.compile(r"(template\s*<[^<>]*>\s*)?__device__ __forceinline__\s[^;{}()]*?(\w+)\s*\(")
_CALLED = re.compile(r"\bgg_ptx::(\w+)\(")
_MODEL = re.compile(r"\bGG_MODEL\s+\w+\s+(\w+)\(")
_OPTIONAL = (
    ("GG_NO_TMA", "ptx_tma.h", "cp_async_bulk_"),
    ("GG_NO_WGMMA", "ptx_wgmma.h", "wgmma_"),
)
"""Headers of models, the macros that ``host.h`` leaves them out for, and how the names begin that
their macros make."""
_CONFIGURED = re.compile(r"(\w+)<<<(.*?)>>>", re.DOTALL)


def unit_text(text: str, interface: Interface) -> str:
    """Header, text, calls of its kernel and of its launcher with their exact types.

    Raises CompileFailure if the text has no kernel, or an instruction without a model.
    """
    functions, kernel, launcher, first = _parts(text)
    if interface.attribute == "dependent_launch" and "__restrict__" in kernel:
        raise CompileFailure("__restrict__ lets compilers read before griddepcontrol.wait")
    file = f"{interface.name}.cu"
    name = f"launch_{interface.name}"
    within = _NAMESPACE.search(functions)
    scope = f"{within[1]}::" if within else ""
    types = ", ".join(_c_type(param, scope) for param in interface.kernel_params)
    after = first + kernel.count("\n") + 1
    modeled = translated(functions, 1)
    lines = [
        *(f"#define {name}" for name in _unused_models(modeled)),
        '#include "host.h"',
        *([_in(within, "struct gg_tensor_map;")] if interface.maps else []),
        # The symbol has another name: the kernel may have the name of a C function.
        f'extern "C" void {interface.name}({types}) __asm__("{SYMBOL}");',
        f'#line 1 "{file}"',
        modeled,
        *_line_macros(functions),
        f'#line {first} "{file}"',
        kernel,
        *_undefined_macros(functions),
        f'#line {after} "{file}"',
        _configured(launcher, interface, after),
        '#line 1 "call"',
        *(f"using namespace {found[1]};" for found in _NAMESPACE.finditer(functions)),
        *_calls(interface, scope, name if has_launcher(text, interface) else None),
        *pass_arguments(interface),
    ]
    lines += _sum_rule(modeled, interface)
    bounds = _LAUNCH_BOUNDS.search(kernel)
    resident = (bounds and bounds[2]) or "1"
    lines.append(f"const unsigned gg_resident_blocks = {resident.strip()};")
    if bounds:
        message = "the launch bounds are the threads of a block"
        lines.append(f'static_assert(({bounds[1]}) == {interface.threads}, "{message}");')
    cluster = _CLUSTER_DIMS.search(kernel)
    blocks = cluster[1] if cluster else "1"
    lines.append(f"const unsigned gg_cluster_blocks = {blocks};")
    message = "the cluster's dimensions are the blocks of a cluster"
    lines.append(f'static_assert(({blocks}) == {interface.cluster_blocks}, "{message}");')
    dynamic = _DYNAMIC_SHARED.search(kernel)
    if dynamic:
        size = max(interface.dynamic_shared, 1)
        aligned = max(LANDS_AT, int(dynamic[1] or 0))
        memory = f"alignas({aligned}) thread_local unsigned char {dynamic[2]}[{size}];"
        lines.append(_in(within, memory))
    return "\n".join(lines) + "\n"


def _sum_rule(functions: str, interface: Interface) -> list[str]:
    """How tensor cores add, for the models of their instructions."""
    if "mma_" not in functions:
        return []
    rule = interface.arithmetic.rule
    if rule is None:
        return ["const GgSumRule gg_sum_rule = {};"]
    values = rule.group, rule.fraction, rule.bits, rule.least, str(rule.converted).lower()
    return [f"const GgSumRule gg_sum_rule = {{{', '.join(map(str, values))}}};"]


def _unused_models(functions: str) -> list[str]:
    """Macros that leave models out of ``host.h``: they are half of g++'s time for a short kernel.
    Those left out that a text calls after all are names that g++ does not know."""
    called = frozenset[str](_CALLED.findall(functions))
    return [
        macro
        for macro, header, family in _OPTIONAL
        if called.isdisjoint(_models_in(header)) and not any(n.startswith(family) for n in called)
    ]


@cache
def _models_in(header: str) -> frozenset[str]:
    """The models that a header writes out; its macros make those of a family."""
    text = resources.files("gemmgen.sim").joinpath(header).read_text(encoding="utf-8")
    return frozenset[str](_MODEL.findall(text))


def _in(namespace: re.Match[str] | None, declaration: str) -> str:
    """A declaration within the namespace of the text's kernel, if it has one."""
    return f"namespace {namespace[1]} {{ {declaration} }}" if namespace else declaration


def closing(functions: str) -> str:
    """The end of the namespaces that ``functions``, above a kernel, open."""
    return "}" * len(_NAMESPACE.findall(functions))


def has_launcher(text: str, interface: Interface) -> bool:
    """Whether ``text`` has a launcher below its kernel."""
    code = re.sub(r"//[^\n]*", "", _parts(text)[2])
    return re.search(rf"\blaunch_{interface.name}\s*\(", code) is not None


def _parts(text: str) -> tuple[str, str, str, int]:
    """The text above the kernel, the kernel with its two comment lines, the text below, and the
    number of the kernel's first line."""
    lines = text.split("\n")
    if lines.count(BEGIN) != 1 or lines.count(END) != 1 or lines.index(END) < lines.index(BEGIN):
        raise CompileFailure(f"the text has no kernel between '{BEGIN}' and '{END}'")
    first, last = lines.index(BEGIN), lines.index(END)
    above, kernel, below = lines[:first], lines[first : last + 1], lines[last + 1 :]
    return "\n".join(above), "\n".join(kernel), "\n".join(below), first + 1


def located_functions(functions: str) -> dict[str, bool]:
    """The functions whose calls are located, and whether they are templates."""
    _, *parts = _FUNCTION.split(functions)
    named = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {name: template is not None for template, name, body in named if needs_line(body)}


def _line_macros(functions: str) -> list[str]:
    """Macros that record the line of each call of a located function; a macro is not expanded in
    itself.  A template, which is called as ``name<3>(x)``, returns nothing."""
    return [
        (
            f"#define {name} gg_at(__LINE__), {name}"
            if is_template
            else f"#define {name}(...) (gg_at(__LINE__), {name}(__VA_ARGS__))"
        )
        for name, is_template in located_functions(functions).items()
    ]


def _undefined_macros(functions: str) -> list[str]:
    return [f"#undef {name}" for name in located_functions(functions)]


def _configured(launcher: str, interface: Interface, line: int) -> str:
    """The launcher with its one ``<<<...>>>`` as a call; those of a pre-pass are run.

    What it keeps for each thread is not ``thread_local`` here: thread-local memory simulates a
    block's shared memory (``host.h``), and one thread makes all calls.
    """
    launcher = re.sub(r"\bthread_local ", "", launcher)
    kernel = interface.name
    for pre_pass in dict.fromkeys(launch.interface for launch in interface.before):
        together = "true" if pre_pass.static_shared else "false"
        launcher = re.sub(
            rf"\b{pre_pass.name}<<<(.*?)>>>",
            rf"gg_pre_pass({together}, {pre_pass.name}, \1)",
            launcher,
            flags=re.DOTALL,
        )
    found = [*_CONFIGURED.finditer(launcher)]
    if not found:
        return launcher
    if len(found) > 1 or "<<<" in found[0][2] or found[0][1] != kernel:
        at = line + launcher.count("\n", 0, found[-1].start())
        raise CompileFailure(f"line {at}: a launcher launches {kernel} in one place")
    return _CONFIGURED.sub(lambda one: f"gg_configure({one[1]}, {one[2]})", launcher)


def _calls(interface: Interface, scope: str, launcher: str | None) -> list[str]:
    """The functions and constants of the text that the runner uses."""
    types, values = _typed(interface.kernel_params, scope)
    arguments = "arguments" if interface.params else ""
    lines = [
        f"static void (*const gg_launched)({', '.join(types)}) = {interface.name};",
        f'extern "C" void gg_call_kernel(const GgArgument *{arguments})'
        f" {{ gg_launched({', '.join(values)}); }}",
        "const void *const gg_kernel = reinterpret_cast<const void *>(gg_launched);",
        f"const bool gg_has_launcher = {'true' if launcher else 'false'};",
        f"const unsigned gg_dynamic_shared = {interface.dynamic_shared};",
        f"const unsigned gg_static_shared = {interface.static_shared};",
    ]
    if launcher is None:
        return [*lines, "int gg_call_launcher(const GgArgument *, void *) { return -1; }"]
    types, values = _typed(interface.params, scope)
    types, values = [*types, "cudaStream_t"], [*values, "static_cast<cudaStream_t>(stream)"]
    return [
        *lines,
        f"static cudaError_t (*const gg_launcher)({', '.join(types)}) = {launcher};",
        f"int gg_call_launcher(const GgArgument *{arguments}, void *stream)"
        f" {{ return gg_launcher({', '.join(values)}); }}",
    ]


def _typed(params: tuple[Param, ...], scope: str) -> tuple[list[str], list[str]]:
    """The types of parameters, and their values from ``arguments``."""
    types = [_c_type(param, scope) for param in params]
    return types, [_c_value(param, scope, i) for i, param in enumerate(params)]


def _c_type(param: Param, scope: str) -> str:
    if param.kind == "map":
        return f"const {scope}gg_tensor_map"
    if param.kind == "tensor":
        return f"{'' if param.written else 'const '}{STORED[param.dtype]} *"
    if param.is_scratch:
        return f"{_stored(param)} *"
    return STORED[param.dtype] if param.kind == "scalar" else _INTEGERS[param.kind][0]


def _stored(param: Param) -> str:
    return "unsigned" if param.kind == "counter" else STORED[param.dtype]


def _c_value(param: Param, scope: str, index: int) -> str:
    if param.kind == "map":
        return f"*static_cast<{_c_type(param, scope)} *>(arguments[{index}].pointer)"
    if param.kind == "tensor" or param.is_scratch:
        return f"static_cast<{_stored(param)} *>(arguments[{index}].pointer)"
    of_scalar = {"f64": "precise", "i32": "integer"}.get(param.dtype, "real")
    member = of_scalar if param.kind == "scalar" else _INTEGERS[param.kind][1]
    return f"arguments[{index}].{member}"
