"""Programs of ``gemmgen emit --main``, and how tests compile and run them."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from gemmgen.base.source import Source
from gemmgen.calling.dimensions import solve
from gemmgen.emit.ctypes import STORED
from gemmgen.host_texts import host_program
from gemmgen.ir.dtypes import RAW
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.planes import COLUMNS_PRE_PASS, Planes
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.pipeline import Emitted, compile_source

EXAMPLES = Path(__file__).parents[2] / "examples"
SEARCHED = tuple(f"spaces/{path.stem}" for path in (EXAMPLES / "spaces").glob("*"))
"""Search spaces."""
NAMES = tuple(
    name
    for path in sorted(EXAMPLES.rglob("*.sched"))
    if (name := path.relative_to(EXAMPLES).with_suffix("").as_posix()) not in SEARCHED
)
BEGIN = "// ---- the program ----"
ON_CPU = Path(__file__).parent / "on_cpu"
CUBLAS = ON_CPU / "cublas"
"""A stand-in for cuBLAS."""


NVCC = shutil.which("nvcc")
GXX = ("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror")
HEADERS = ("algorithm", "cmath", "cstdio", "cstdlib", "functional", "random", "vector")
"""Those of every program; the test with nvcc sees whether a program includes them itself."""


def cublas() -> list[str] | None:
    """How nvcc compiles and links with cuBLAS: the toolkit's, or else a wheel's; None without it.

    A wheel has no ``libcublas.so``, which ``-lcublas`` would look for.
    """
    wheel = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in wheel.submodule_search_locations or ()] if wheel else []
    homes = [*([Path(NVCC).resolve().parents[1]] if NVCC else []), Path("/usr/local/cuda")]
    for home in (*homes, *(found for place in places for found in sorted(place.iterdir()))):
        headers = _found(home, ("include", "targets/*/include"), "cublas_v2.h")
        libraries = _found(home, ("lib64", "lib", "targets/*/lib"), "libcublas.so*")
        if headers and libraries:
            rpath = ["-Xlinker", f"-rpath={libraries[0].parent}"]
            return [f"-I{headers[0].parent}", str(libraries[0]), *rpath]
    return None


def _found(home: Path, folders: tuple[str, ...], name: str) -> list[Path]:
    return [path for folder in folders for path in sorted(home.glob(f"{folder}/{name}"))]


@functools.cache
def example(name: str) -> Emitted:
    path = EXAMPLES / f"{name}.sched"
    return compile_source(Source(path.read_text(encoding="utf-8"), f"{name}.sched"))


def program(emitted: Emitted, *shape: int) -> str:
    """The program whose extents are ``shape`` by default, or the next that the launcher takes."""
    return host_program(emitted, extents(emitted.interface, shape), "run.cu")


def extents(interface: Interface, shape: tuple[int, ...]) -> dict[str, int]:
    """M, N, K and batches (2, 3, ... matrices where they are left out) by the launcher's names."""
    letters = contraction(interface).letters
    full = (*shape, *range(2, 2 + len(letters) - len(shape)))
    named = {interface.extent(x): size for x, size in zip(letters, full, strict=True)}
    found = solve(interface, named, 0)
    return {name: found[name] for name in interface.extent_names()}


# On this machine: the launcher's checks as emitted, and a definition in place of its kernel.

FORMULAS = {
    "relu": "(x) < 0.0 ? 0.0 : (x)",
    "sigmoid": "1.0 / (1.0 + std::exp(-(x)))",
    "gelu_tanh": "0.5 * (x) * (1 + std::tanh(0.79788456 * ((x) + 0.044715 * std::pow(x, 3))))",
}
"""Functions of an epilogue, written once more."""


def on_cpu(emitted: Emitted, text: str, epilogue: str, folder: Path, *flags: str) -> Path:
    """``text`` (a program of ``emitted``) compiled for this machine; ``epilogue`` is its formula,
    of ``acc`` and the elements by their tensors' names."""
    return built(for_cpu(emitted, text, epilogue), folder, *flags)


def for_cpu(emitted: Emitted, text: str, epilogue: str) -> str:
    """The program of ``on_cpu`` as C++."""
    launcher = emitted.text.partition("#ifndef __CUDACC_RTC__\n")[2].rpartition("#endif")[0]
    launcher = re.sub(r"<<<.*?>>>\(", "_defined(", launcher, flags=re.DOTALL)
    launcher = re.sub(r"cudaLaunchKernelEx\(&config, (\w+), ", r"\1_defined(", launcher)
    known = r"^constexpr int [^;]*;|^struct alignas[^{]*\{[^}]*\};"
    device = emitted.text.partition("#ifndef __CUDACC_RTC__\n")[0]
    constants = "\n".join(re.findall(known, device, re.MULTILINE))
    return (
        '#include "runtime.h"\n#include <cmath>\n'
        f"namespace {emitted.name}_detail {{\n{constants}\n}}\n"
        f"{_definition(emitted, epilogue)}\n{launcher}\n{text[text.index(BEGIN):]}"
    )


def built(source: str, folder: Path, *flags: str) -> Path:
    """The program of this C++."""
    (folder / "run.cpp").write_text(source, encoding="utf-8")
    include = ("-include", str(_prefix()), f"-I{ON_CPU}", f"-I{CUBLAS}")
    command = [*GXX, "-Wno-unused", *flags, *include, "run.cpp", "-o", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def in_namespaces(programs: Mapping[str, tuple[Emitted, str]]) -> str:
    """Programs by their names as one unit without a ``main``: each in a namespace, ``program_0``,
    ..., below the headers of all.  Most of a compiler's time for one is that for headers and what
    all programs instantiate."""
    headers, parts = dict[str, None](), list[str]()
    for at, (name, (emitted, text)) in enumerate(programs.items()):
        headers |= dict.fromkeys(re.findall(r"^#include .*$", text, re.MULTILINE))
        defined = re.findall(r"^#define (\w+)", text, re.MULTILINE)
        # extern "C" functions of one name would be one function.
        names_of_its_own = (emitted.name, f"launch_{emitted.name}")
        parts += (f"#define {word} {word}_{at}" for word in names_of_its_own)
        parts += (f"namespace program_{at} {{", f'#line 1 "{name}.cu"', text, "}")
        parts += (f"#undef {word}" for word in (*names_of_its_own, *defined))
    return "\n".join((*headers, *parts, ""))


def said_on_cpu(
    programs: Mapping[str, tuple[Emitted, str]], folder: Path
) -> dict[str, tuple[int, str]]:
    """By name the exit code and the output of the programs of kernels, with their formulas, for
    the extents 7, 9, 11: compiled as one, which gets the number of the program that it runs."""
    sources = {
        name: (emitted, for_cpu(emitted, program(emitted, 7, 9, 11), formula))
        for name, (emitted, formula) in programs.items()
    }
    calls = (f"case {at}: return program_{at}::main(1, argv);" for at in range(len(sources)))
    choice = f"switch (std::atoi(argv[1])) {{\n{chr(10).join(calls)}\n}}\nreturn argc + 9;"
    chosen = f"int main(int argc, char **argv) {{\n{choice}\n}}\n"
    made = built(in_namespaces(sources) + chosen, folder)
    found = dict[str, tuple[int, str]]()
    for at, name in enumerate(sources):
        done = subprocess.run([made, str(at)], capture_output=True, text=True)
        found[name] = done.returncode, done.stdout + done.stderr
    return found


@functools.cache
def _prefix() -> Path:
    """A header of the library's that programs include, compiled once for all processes: most of
    g++'s time for a program is that for the headers."""
    version = subprocess.run(["g++", "-v"], capture_output=True, text=True, check=True).stderr
    key = hashlib.sha256(repr((GXX, HEADERS, version)).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "on_cpu" / key
    header, compiled = folder / "prefix.h", folder / "prefix.h.gch"
    if not compiled.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{os.getpid()}.h"
        draft.write_text("".join(f"#include <{name}>\n" for name in HEADERS), encoding="utf-8")
        made = draft.with_suffix(".gch")
        subprocess.run([*GXX, "-x", "c++-header", str(draft), "-o", str(made)], check=True)
        draft.replace(header)
        made.replace(compiled)
    return header


def _definition(emitted: Emitted, epilogue: str) -> str:
    """The kernel as loops; with -DPLANTED=0.01 its last element is off by that."""
    interface, product = emitted.interface, contraction(emitted.interface)
    of = {param.name: param for param in interface.tensors}
    lines = [
        f"#define {name}(x) ({formula})" for name, formula in FORMULAS.items() if name in epilogue
    ]
    lines += _splitting(emitted)
    scope = f"{emitted.name}_detail::"
    declared = (_declared(param, scope) for param in interface.kernel_params)
    lines += [f"void {emitted.name}_defined({', '.join(declared)})", "{"]
    alone = (one for one in interface.maps if not one.beside)
    lines += [line for one in alone for line in _unmapped(interface, one)]
    for letter in product.c.indices:
        lines.append(_loop(interface, letter) + " {")
    a, b = (_read(interface, param) for param in (product.a, product.b))
    lines += ["double acc = 0.0;", f"{_loop(interface, product.k)} acc += 1.0 * {a} * {b};"]
    lines += [
        f"const double {name}_at = {_read(interface, param)};"
        for name, param in of.items()
        if re.search(rf"\b{name}_at\b", epilogue)
    ]
    c = product.c
    last = " && ".join(f"{x} == {interface.extent(x)} - 1" for x in c.indices)
    lines.append(f"double value = {epilogue};")
    lines.append(f"#ifdef PLANTED\nif ({last}) value += PLANTED;\n#endif")
    if c.dtype in RAW:
        lines.append(f"{_place(interface, c)} = {_number(c)}(value).bits;")
    elif c.dtype == "i8":
        saturated = "std::fmin(std::fmax(value, -128.0), 127.0)"
        lines.append(f"{_place(interface, c)} = std::nearbyint({saturated});")
    else:
        lines.append(f"{_place(interface, c)} = value;")
    lines += ["}"] * len(c.indices)
    lines.append("}")
    lines += [f"#undef {name}" for name in FORMULAS if name in epilogue]
    return "\n".join(lines)


def _unmapped(interface: Interface, tensor_map: TensorMap) -> Iterator[str]:
    """A tensor's pointer and steps, by the map that runtime.h encodes."""
    name = tensor_map.tensor
    param = interface.mapped(tensor_map)
    pointer = _declared(param).rpartition(name)[0]
    yield f"{pointer}const {name} = reinterpret_cast<{pointer}>({name}_map.words[0]);"
    steps = [one.stride for one in interface.map_dimensions(tensor_map)[1:]]
    for at, step in enumerate(steps):
        if step not in interface.extent_names():
            yield f"const long long {step} = {name}_map.words[{6 + at}] / {param.item};"


def _declared(param: Param, scope: str = "") -> str:
    if param.kind == "map":
        return f"const {scope}gg_tensor_map &{param.name.removesuffix('_map')}_map"
    if param.kind in ("extent", "ld", "stride"):
        return f"{'long long' if param.kind == 'stride' else 'int'} {param.name}"
    kind = "unsigned" if param.kind == "counter" else STORED[param.dtype]
    if param.kind == "scalar":
        return f"{kind} {param.name}"
    return f"{'' if param.written or param.is_scratch else 'const '}{kind} *{param.name}"


def _loop(interface: Interface, letter: str) -> str:
    return f"for (int {letter} = 0; {letter} < {interface.extent(letter)}; ++{letter})"


def _place(interface: Interface, param: Param) -> str:
    steps: Mapping[str, str | None] = dict(zip(param.indices, interface.steps(param), strict=True))
    terms = (f"1LL * {letter} * {step or 1}" for letter, step in steps.items())
    return f"{param.name}[{' + '.join(terms)}]"


def _read(interface: Interface, param: Param) -> str:
    for planes in interface.split:
        if planes.planes is not None and planes.planes.source == param.name:
            return _sum_of_parts(planes, planes.planes, param)
    place = _place(interface, param)
    if param.dtype not in RAW:
        return place
    return f"static_cast<float>(*reinterpret_cast<const {_number(param)} *>(&{place}))"


def _sum_of_parts(param: Param, planes: Planes, source: Param) -> str:
    """An element as the parts of it that the launcher's first kernel left."""
    row, column = source.indices
    at = f"1LL * {row} * {planes.pitch} + {column}"
    element = f"*reinterpret_cast<const {_number(param)} *>"
    element += f"(&{param.name}[{{}} * {planes.plane} + {at}])"
    parts = (f"1.0 * static_cast<float>({element.format(i)})" for i in range(planes.count))
    return f"({' + '.join(parts)})"


def _splitting(emitted: Emitted) -> Iterator[str]:
    """The pre-pass: each term is the rest after the previous ones, rounded."""
    known: set[str] = set()
    for param, launch in zip(emitted.interface.split, emitted.interface.before, strict=True):
        name = launch.interface.name
        if name in known:
            continue
        known.add(name)
        assert param.planes is not None
        scaled = ", float *scales" if param.planes.scaled_by else ""
        yield f"void {name}_defined("
        yield "    int rows, int columns, const float *source, int ld, unsigned short *planes"
        yield f"    {scaled}) {{"
        yield "const long long pitch = (columns + 7) / 8 * 8;"
        if scaled:  # the host multiplies numbers of f16's range: all scales are 1
            count = "columns" if name == COLUMNS_PRE_PASS.format(kernel=emitted.name) else "rows"
            yield f"for (int i = 0; i < {count}; ++i) scales[i] = 1.0f;"
        yield "for (int i = 0; i < rows; ++i) for (int j = 0; j < columns; ++j) {"
        yield "float left = source[1LL * i * ld + j];"
        yield f"for (int part = 0; part < {param.planes.count}; ++part) {{"
        yield f"const {_number(param)} rounded(left);"
        yield "planes[(part * 1LL * rows + i) * pitch + j] = rounded.bits;"
        yield "left -= static_cast<float>(rounded);\n}\n}\n}"


def _number(param: Param) -> str:
    """CUDA's class of numbers that are stored as bits."""
    halves = {"f16": "__half", "bf16": "__nv_bfloat16"}
    return halves.get(param.dtype, f"__nv_fp8_{param.dtype}")
