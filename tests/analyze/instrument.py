"""The emitted text, compiled by g++ with every access of memory reported: counts from outside.

Nothing of gemmgen.analyze is used here.  Threads run one after another, whole: addresses do not
depend on values, so barriers have nothing to do.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gemmgen.emit.ctypes import STORED as TYPES
from gemmgen.ir.dtypes import BYTES
from gemmgen.pipeline import Emitted

HERE = Path(__file__).parent
STORED = "float|double|unsigned short"
FLAGS = ("-std=c++17", "-O0", "-w", "-I", str(HERE))

Counted = tuple[int, ...]
"""elements, requests, sectors, lines, phases, wavefronts, ways"""


def build_counter(folder: Path) -> Path:
    """What all instrumented kernels share."""
    made = folder / "counter.o"
    source = str(HERE / "counter.cpp")
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-w", "-c", source, "-o", str(made)], check=True, timeout=60
    )
    return made


def build(emitted: Emitted, counter: Path, folder: Path) -> Path:
    """A program that takes the arguments of ``counts``."""
    source, made = folder / "kernel.cpp", folder / "kernel"
    source.write_text(f'#include "counter.h"\n#include <cstdlib>\n{_watched(emitted.text)}')
    with source.open("a") as file:
        file.write(_driver(emitted))
    command = ["g++", *FLAGS, str(source), str(counter), "-o", str(made)]
    subprocess.run(command, check=True, timeout=60)
    return made


def counts(
    program: Path, emitted: Emitted, values: dict[str, int | float]
) -> dict[tuple[str, bool], Counted]:
    """Of each buffer and direction, over the whole launch."""
    interface = emitted.interface
    extents = {name: int(values[name]) for name in interface.shaping()}
    arguments = [interface.grid(extents), *interface.block]
    for param in interface.params:
        if param.kind == "tensor":
            sizes = [int(values[interface.extent(letter)]) for letter in param.indices]
            steps = [1 if s is None else int(values[s]) for s in interface.steps(param)]
            arguments.append(max(n * s for n, s in zip(sizes, steps, strict=True)))
        else:
            arguments.append(values[param.name])
    command = [str(program), *map(str, arguments)]
    message = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    found: dict[tuple[str, bool], Counted] = {}
    for line in message.stdout.splitlines():
        name, write, *numbers = line.split()
        found[name, write == "1"] = tuple(map(int, numbers))
    return found


def _watched(text: str) -> str:
    kernel = text.split("// ---- kernel ----")[1].split("// ---- end of kernel ----")[0]
    kernel = re.sub(rf"\b({STORED}) \*__restrict__ ", r"Watched<\1> *__restrict__ ", kernel)
    kernel = re.sub(
        r"__device__ (__forceinline__ void \w+\((?:[^()]|\([^()]*\))*\))",
        lambda found: _for_any_pointers(found[1]),
        kernel,
    )
    kernel, shared = re.subn(
        rf"__shared__ alignas\(16\) ({STORED}) (\w+)(\[.*\]);",
        r'alignas(128) static Watched<\1> \2\3; watch("\2", \2, sizeof(\2), sizeof(\1), true);',
        kernel,
    )
    assert shared == kernel.count("static Watched") and "__shared__" not in kernel
    kernel, loops = re.subn(
        r"for \(int (\w+) = [^;]*;[^;]*;[^;()]*\)", r"\g<0> if (const Trip trip{\1}; true)", kernel
    )
    assert loops == kernel.count("for (")
    return kernel


def _for_any_pointers(head: str) -> str:
    """The head of a function, a template of what its pointers point to; its arrays are watched."""
    head = re.sub(rf"\b({STORED}) \(&", r"Watched<\1> (&", head)
    kinds = iter("ABCD")
    head, pointers = re.subn(rf"\b(?:{STORED}) \*", lambda _: f"Type{next(kinds)} *", head)
    return f"template <{', '.join(f'typename Type{kind}' for kind in 'ABCD'[:pointers])}> {head}"


def _driver(emitted: Emitted) -> str:
    lines = ["static char **given;", "void launch_one() {"]
    lines.append("    static char **g = given;")
    passed: list[str] = []
    for at, param in enumerate(emitted.interface.params):
        if param.kind == "tensor":
            each = BYTES[param.dtype]
            size, watched = f"std::atol(g[{at}]) * {each}", f"Watched<{TYPES[param.dtype]}> *"
            lines.append(
                f"    static {watched}{param.name} = static_cast<{watched}>("
                f"std::aligned_alloc(256, ({size} / 256 + 1) * 256));"
            )
            lines.append(f'    watch("{param.name}", {param.name}, {size}, {each}, false);')
            passed.append(param.name)
        else:
            read = "atof" if param.kind == "scalar" else "atoi"
            passed.append(f"std::{read}(g[{at}])")
    lines.append(f"    {emitted.name}({', '.join(passed)});")
    lines.append("}")
    lines.append("int main(int, char **argv) {")
    lines.append("    given = argv + 4;")
    lines.append("    return run(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));")
    lines.append("}")
    return "\n".join(lines) + "\n"
