"""Findings of a checked run, decoded from the runner's records and located in the text."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from gemmgen.base.record import record
from gemmgen.sim.citations import blame
from gemmgen.sim.findings import Actor, Finding, Kind, Location
from gemmgen.sim.shared_symbols import TYPE, SharedSymbol
from gemmgen.sim.unit import BEGIN

_KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of runner.h."""
_CONFLICTS: tuple[Kind, ...] = (
    *("race", "two owners", "divergent barrier", "under way", "divergent warp", "not fenced"),
)
"""Kinds with another access; the other thread of a divergence may have left the kernel."""
_ACCESS = struct.Struct("=Q4I")
_FINDING = struct.Struct("=4Iq")
_DETAIL_BYTES = 480
RECORD_BYTES = _FINDING.size + 2 * _ACCESS.size + _DETAIL_BYTES
_BESIDE_THREAD, _BY_TENSOR_CORE = 2, 6
_ACTORS: dict[int, Actor] = {
    0: "thread",
    _BESIDE_THREAD: "TMA",
    _BY_TENSOR_CORE: "tensor core",
}
_TENSOR, _SHARED, _SEGMENT = 1, 2, 3
_ADDRESS = re.compile(r"\bshared:(\d+)")
"""How a detail names an address: its offset in shared memory."""


@record
class TensorShape:
    """A tensor of a launch; ``strides`` count bytes, the last of them an element's."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def index(self, offset: int) -> tuple[int, ...]:
        """The index of the element that begins ``offset`` bytes after the lowest; outside the shape
        if the offset is."""
        index = [0] * len(self.shape)
        order = sorted(range(len(index)), key=lambda i: -abs(self.strides[i]))
        for i in order:
            if self.strides[i]:
                index[i], offset = divmod(offset, abs(self.strides[i]))
            if self.strides[i] < 0:
                index[i] = self.shape[i] - 1 - index[i]
        return tuple(index)

    def text(self) -> str:
        """``A is 127 x 40, 44 apart``"""
        apart = [stride // self.strides[-1] for stride in self.strides[:-1]]
        rows = f", rows {apart[-1]} elements apart" if apart else ""
        return f"{self.name} has {' x '.join(map(str, self.shape))} elements{rows}"


@record
class CheckedRun:
    """The subject of the records: the kernel's text and program, and the launch."""

    text: str
    file: str
    program: Path
    threads_x: int
    tensors: tuple[TensorShape, ...]
    arrays: tuple[SharedSymbol, ...]


def read_findings(records: bytes, context: CheckedRun) -> tuple[Finding, ...]:
    """The findings of a run, in its order; reads of unwritten memory are last, as a race may be
    their cause."""
    starts = range(0, len(records), RECORD_BYTES)
    raw = [_unpack(records[start : start + RECORD_BYTES]) for start in starts]
    addresses = [a.pc for record in raw for a in (record.access, record.other) if a.pc]
    lines = _lines_of(addresses, context)
    found = [_finding(record, context, lines) for record in raw]
    return tuple(sorted(found, key=lambda finding: finding.kind == "never written"))


@record
class _RawAccess:
    pc: int
    line: int
    block: int
    thread: int
    write: int


@record
class _Record:
    """One ``Finding`` of runner.h."""

    kind: int
    target: int
    number: int
    bytes: int
    offset: int
    access: _RawAccess
    other: _RawAccess
    detail: str


def _unpack(packed: bytes) -> _Record:
    first = _FINDING.size
    second = first + _ACCESS.size
    end = second + _ACCESS.size
    access = _RawAccess(*_ACCESS.unpack(packed[first:second]))
    other = _RawAccess(*_ACCESS.unpack(packed[second:end]))
    detail = packed[end:].partition(b"\0")[0].decode("utf-8", "replace")
    kind, target, number, size, offset = _FINDING.unpack(packed[:first])
    return _Record(kind, target, number, size, offset, access, other, detail)


def _finding(record: _Record, context: CheckedRun, lines: Mapping[int, int]) -> Finding:
    kind = _KINDS[record.kind]
    conflict = kind in _CONFLICTS or record.other.line != 0
    name, detail = "", record.detail
    index: tuple[int, ...] = ()
    if record.target == _TENSOR and record.number < len(context.tensors):
        tensor = context.tensors[record.number]
        name, index = tensor.name, tensor.index(record.offset)
        detail = tensor.text() if kind == "out of bounds" else ""
    elif record.target == _SHARED and record.number < len(context.arrays):
        array = context.arrays[record.number]
        name, index = array.name, array.index(record.offset)
    elif record.target == _SEGMENT:
        name, index = _nearest_array(record.offset, context.arrays)
    elif record.target == _SHARED:
        name, index = _nearest_array(record.offset, context.arrays)
        detail = "it is not wholly within the array"
    return Finding(
        kind,
        name,
        index,
        record.bytes,
        _access(record.access, context, lines),
        _access(record.other, context, lines) if conflict else None,
        _ADDRESS.sub(lambda found: _name_of(int(found[1]), context.arrays), detail),
        blame(context.text, _declaration(name, context.text)) if record.target >= _SHARED else "",
    )


def _declaration(name: str, text: str) -> int:
    """The line that declares a shared array, or 0."""
    declares = re.compile(rf"\b(?:{TYPE})(?: |\(\*const ){name}\b")
    numbers = (i for i, line in enumerate(text.split("\n"), 1) if declares.search(line))
    return next(numbers, 0)


def _nearest_array(offset: int, arrays: tuple[SharedSymbol, ...]) -> tuple[str, tuple[int, ...]]:
    before = [array for array in arrays if array.offset <= offset]
    if not before:
        return "shared memory", ()
    nearest = max(before, key=lambda array: array.offset)
    return nearest.name, nearest.index(offset - nearest.offset)


def _name_of(offset: int, arrays: tuple[SharedSymbol, ...]) -> str:
    """``full[2]``, or how far from the beginning of shared memory it is."""
    for array in arrays:
        within = offset - array.offset
        if 0 <= within < array.bytes:
            index = array.index(within) if array.bytes > array.element else ()
            return f"{array.name}[{', '.join(map(str, index))}]" if index else array.name
    return f"byte {offset} of shared memory"


def _access(raw: _RawAccess, context: CheckedRun, lines: Mapping[int, int]) -> Location:
    line = raw.line or lines.get(raw.pc, 0)
    y, x = divmod(raw.thread, context.threads_x)
    text = context.text.split("\n")[line - 1].strip() if line else ""
    cited = blame(context.text, line)
    write, by = bool(raw.write & 1), _ACTORS[raw.write & ~1]
    return Location(raw.block, (x, y), write, line, text, cited, by)


def _lines_of(addresses: list[int], context: CheckedRun) -> dict[int, int]:
    """The line of the text for each return address, by the debug information; if a function
    above the kernel was inlined, the kernel's line."""
    unique = sorted(set(addresses))
    if not unique:
        return {}
    asked = [hex(address - 1) for address in unique]
    command = ["addr2line", "--inlines", "--addresses", f"--exe={context.program}", *asked]
    answer = subprocess.run(command, capture_output=True, text=True).stdout
    first = context.text.split("\n").index(BEGIN) + 1
    lines: dict[int, int] = {}
    address = 0
    for line in answer.splitlines():
        if line.startswith("0x"):
            address = int(line, 16) + 1
            continue
        path, _, number = line.partition(" ")[0].rpartition(":")
        known = lines.get(address, 0) >= first
        if Path(path).name == context.file and number.isdigit() and not known:
            lines[address] = int(number)
    return lines
