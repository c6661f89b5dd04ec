"""Mutants outside the kernel: every text with one change in a function above the kernel, or in the
launcher below."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gemmgen.sim.unit import BEGIN, END

from .mutants import Mutant, closing
from .planted import Change

Rule = Callable[[str], Iterator[Change]]

_MODIFIERS = {
    "row": ("col",),
    "col": ("row",),
    "a": ("b",),
    "b": ("a",),
    "cg": ("ca",),
    "ca": ("cg",),
    "f16": ("bf16",),
    "bf16": ("f16",),
    "bfly": ("down", "up"),
    "down": ("bfly",),
    "acq_rel": ("relaxed",),
    "gpu": ("cta",),
    "rn": ("rz",),
    "inc": ("add",),
    "wait_group": ("commit_group",),
    "commit_group": ("wait_all",),
}
_PTX = re.compile(r'"[^"\n]*;"|"(?:[a-z]+\.)+[^"\n]*"')
_MNEMONIC = re.compile(r"(?<=\.)(\w+)")
_OPERAND_NUMBER = re.compile(r"%(\d+)")
_OPERAND = re.compile(r'"([=+]?)([rhlfd])"\(([^()]*(?:\([^()]*\))?[^()]*)\)')
_LAST = re.compile(r", (?:%\d+|0x\w+)(?=;)")
_NUMBER = re.compile(r"(?<![\w.%])(?:0x[0-9a-f]+|\d+)(?=[;,])")


def functions_mutants(text: str) -> tuple[Mutant, ...]:
    """Mutants of the functions above the kernel."""
    end = text.index(BEGIN)
    return _mutants(text, text[:end], 0, _FUNCTION_RULES)


def launcher_mutants(text: str) -> tuple[Mutant, ...]:
    """Mutants of the launcher below it, and of the function that encodes its tensor maps with the
    numbers above it."""
    mapped = "gg_encode_map(" in text
    first = "cudaError_t gg_encode_map(" if mapped else "cudaError_t launch_"
    start = text.index("{\n", text.index(first))
    numbers: tuple[Mutant, ...] = ()
    if mapped:
        at = text.index("constexpr int gg_")
        numbers = _mutants(text, text[at : text.index("\n", at)], at, _LAUNCHER_RULES)
    return (*numbers, *_mutants(text, text[start:], start, _LAUNCHER_RULES))


def _mutants(text: str, part: str, start: int, rules: tuple[Rule, ...]) -> tuple[Mutant, ...]:
    code = re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), part)
    assert END not in code
    found = {change for rule in rules for change in rule(code) if change[1] != change[2]}
    return tuple(Mutant(text, start + at, before, after) for at, before, after in sorted(found))


# Functions.


def _modifiers(code: str) -> Iterator[Change]:
    """Another instruction of the same shape."""
    for template in _PTX.finditer(code):
        for found in _MNEMONIC.finditer(code, template.start(), template.end()):
            for other in _MODIFIERS.get(found[1], ()):
                yield found.start(), found[1], other


def _operand_numbers(code: str) -> Iterator[Change]:
    """The next operand, or the one before."""
    for template in _PTX.finditer(code):
        for found in _OPERAND_NUMBER.finditer(code, template.start(), template.end()):
            for other in (int(found[1]) + 1, int(found[1]) - 1):
                if other >= 0:
                    yield found.start(), found[0], f"%{other}"


def _constants(code: str) -> Iterator[Change]:
    for template in _PTX.finditer(code):
        for found in _NUMBER.finditer(code, template.start(), template.end()):
            value = int(found[0], 0)
            for other in (value + 1, value - 1, value // 2):
                yield found.start(), found[0], str(other)
        for found in _LAST.finditer(code, template.start(), template.end()):
            yield found.start(), found[0], ""  # the last operand: the size of a copy's source


def _statements(code: str) -> Iterator[Change]:
    """A statement without ``volatile``, without its clobber, or left out."""
    for found in re.finditer(r"asm volatile\(", code):
        yield found.start(), found[0], "asm("
    for found in re.finditer(r' ?: "memory"', code):
        yield found.start(), found[0], ""
    for found in re.finditer(r"asm (?:volatile)?\([^;]*;\"[^;]*;", code):
        yield found.start(), found[0], ";"


def _operands(code: str) -> Iterator[Change]:
    """Another constraint, or another value."""
    for found in _OPERAND.finditer(code):
        at = found.start(1)
        if found[1]:
            yield at, found[1], {"=": "+", "+": "="}[found[1]]
        else:
            for kind in "rl":
                yield found.start(2), found[2], kind
            if found[3] != "pointer":
                yield found.start(3), found[3], f"{found[3]} + 1"
    for found in re.finditer(r'"n"\((\w+)\)', code):
        for other in (f"{found[1]} + 1", f"{found[1]} > 0 ? {found[1]} - 1 : 0", "0"):
            yield found.start(1), found[1], other


def _addresses(code: str) -> Iterator[Change]:
    for found in re.finditer(r"(?:__cvta_generic_to_shared|gg_shared)\((&?\w+)\)", code):
        yield found.start(), found[0], f"reinterpret_cast<unsigned long long>({found[1]})"
        yield found.start(1), found[1], f"{found[1]} + 1"


# Launchers.


def _conditions(code: str) -> Iterator[Change]:
    """A condition of several left out, negated or moved by one."""
    for head in re.finditer(r"if \(", code):
        end = closing(code, head.end() - 1)
        begin = head.end()
        for part in re.split(r" \|\|\s+", code[begin:end]):
            at = code.index(part, begin)
            yield at, part, "false"
            begin = at + len(part)
            for found in re.finditer(r" (<|>|==|!=) ", part):
                for other in {"<": "<= >", ">": ">= <", "==": "!=", "!=": "=="}[found[1]].split():
                    yield at + found.start(1), found[1], other


def _numbers(code: str) -> Iterator[Change]:
    for found in re.finditer(r"(?<![\w.])(\d+)(?=(?:LL)?\b)", code):
        value = int(found[1])
        for other in (value + 1, value - 1, value // 2, 2 * value):
            if other >= 0:
                yield found.start(1), found[1], str(other)


def _block_counts(code: str) -> Iterator[Change]:
    """Formulas of the number of blocks."""
    for found in re.finditer(r"\((\w+) - 1\)", code):
        yield found.start(), found[0], found[1]
    for found in re.finditer(r" \+ 1LL", code):
        yield found.start(), found[0], ""
    for found in re.finditer(r" ([*/]) \w+(?=[;)])", code):
        yield found.start(), found[0], ""


def _returns(code: str) -> Iterator[Change]:
    """Another error, and none."""
    errors = (
        "cudaErrorInvalidValue",
        "cudaErrorMisalignedAddress",
        "cudaErrorInvalidConfiguration",
    )
    for found in re.finditer(r"return (\w+)(?=;)", code):
        for other in (*errors, "cudaSuccess"):
            yield found.start(1), found[1], other
    for found in re.finditer(r"return cudaGetLastError\(\);", code):
        yield found.start(), found[0], "return cudaSuccess;"
    for found in re.finditer(r"\bif \((?:alpha|error|tiles|blocks)[^;]*;", code):
        yield found.start(), found[0], ";"


def _launch(code: str) -> Iterator[Change]:
    """The launch configuration, and the arguments."""
    found = re.search(r"(\w+)<<<(.*?), (dim3\((\w+), (\w+)\)|\w+), (\w+), stream>>>\(", code)
    if found is None:  # of a launch by cudaLaunchKernelEx
        return
    yield found.end() - len("stream>>>("), "stream", "nullptr"
    if found[4]:
        yield found.start(3), found[3], f"dim3({found[5]}, {found[4]})"
    yield found.start(2), found[2], f"dim3(1, {found[2]})"
    end = closing(code, found.end() - 1)
    arguments = [*re.finditer(r"[\w.]+", code[found.end() : end])]
    for i, one in enumerate(arguments):
        for other in arguments[i + 1 :]:
            yield found.end() + one.start(), one[0], other[0]
    attribute = re.search(r"cudaFuncSetAttribute\([^;]*\);", code)
    if attribute:
        yield attribute.start(), attribute[0], "cudaSuccess;"


FUNCTION_KINDS: dict[str, Rule] = {
    "another instruction": _modifiers,
    "asm operand": _operand_numbers,
    "asm constant": _constants,
    "asm statement": _statements,
    "asm constraint": _operands,
    "address": _addresses,
}
LAUNCHER_KINDS: dict[str, Rule] = {
    "launcher condition": _conditions,
    "launcher number": _numbers,
    "block count": _block_counts,
    "launcher error": _returns,
    "first launch": _launch,
}
_FUNCTION_RULES, _LAUNCHER_RULES = (
    tuple(kinds.values()) for kinds in (FUNCTION_KINDS, LAUNCHER_KINDS)
)
