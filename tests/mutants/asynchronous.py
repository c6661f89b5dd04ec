"""Mutants of what threads wait for, of roles, clusters and warpgroups; and of declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .planted import Change

_WAIT = re.compile(r"while \(!gg_try_wait\(([^;{}]*), (\w+|[^,;{}]*\))\)\) \{\}")
_CALL = re.compile(r"\b(gg_\w+)(?:<[^<>;]*>)?\(([^;{}]*)\);")
_REGISTERS = re.compile(r"(?<=_REGISTERS = )(\d+)")
_STATEMENT = re.compile(
    r"(?<=\n) *(?=(?:gg_|__sync|stage|phase|if \(threadIdx)[^;{}\n]*;\n)[^;\n]*;"
)
_ELECTED = re.compile(r"threadIdx\.x(?: % 32)? (==|<) ([\w/ ]+)(?=\))")
_COUNTED = {"gg_init_barrier": (" + 1", " - 1"), "gg_expect_bytes": (" + 16", " / 2", " - 2")}
_MULTICAST = re.compile(r"gg_multicast_box_\dd$")


def waits(body: str, start: int) -> Iterator[Change]:
    """No wait for a phase, or a wait for the other one."""
    for found in _WAIT.finditer(body, start):
        yield found.start(), found[0], ";"
        yield found.start(2), found[2], f"1 - {found[2]}"


def barrier_counts(body: str, start: int) -> Iterator[Change]:
    """A barrier of more arrivals or fewer, other bytes."""
    for found in _CALL.finditer(body, start):
        if found[1] in _COUNTED:
            at = found.start(2) + found[2].rindex(",") + 1
            at += len(body[at:]) - len(body[at:].lstrip())
            for more in _COUNTED[found[1]]:
                yield at, body[at : found.end(2)], f"({body[at : found.end(2)]}){more}"


def clusters(body: str, start: int) -> Iterator[Change]:
    """An arrival at one block, a multicast to one block or to all others."""
    for found in _CALL.finditer(body, start):
        last = found[2].rpartition(",")[2].strip()
        at = found.end(2) - len(last)
        if found[1] == "gg_arrive_at":
            yield at, last, "0"
            yield at, last, f"1 - {last}"
        if _MULTICAST.match(found[1]):
            yield at, last, "1"
            yield at, last, f"({last}) - 1"
    for found in re.finditer(r"\brank_[mn]\b(?! =)", body[start:]):
        yield start + found.start(), found[0], "0"


def exchanged(body: str, start: int) -> Iterator[Change]:
    """Two statements that follow one another exchanged."""
    lines = [*_STATEMENT.finditer(body, start)]
    for one, other in pairwise(lines):
        between = body[one.end() : other.start()]
        if between.strip() == "" and _indent(one[0]) == _indent(other[0]):
            whole = body[one.start() : other.end()]
            yield one.start(), whole, f"{other[0]}{between}{one[0]}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def registers(body: str, _start: int) -> Iterator[Change]:
    """Other registers of a role; the count is a multiple of 8."""
    for found in _REGISTERS.finditer(body):
        for other in (int(found[1]) + 8, int(found[1]) - 8, 128):
            yield found.start(), found[1], str(other)


def descriptors(body: str, start: int) -> Iterator[Change]:
    """Another distance between the rows of an operand, or a step along k twice as long."""
    for found in re.finditer(r"(gg_matrix_\w+\([^;]*, )(\d+)(?=\);)", body[start:]):
        for other in (2 * int(found[2]), int(found[2]) // 2):
            yield start + found.start(2), found[2], str(other)
    for found in re.finditer(r"(?<=_matrix \+ )[^;,]*? / 16", body[start:]):
        yield start + found.start(), found[0], f"2 * ({found[0]})"
        yield start + found.start(), found[0], "0"


def elected(body: str, start: int) -> Iterator[Change]:
    """Another thread, or one more."""
    for found in _ELECTED.finditer(body, start):
        yield found.start(2), found[2], f"{found[2]} + 1"
        if found[1] == "<":
            yield found.start(1), "<", "<="


def declarations(code: str) -> Iterator[Change]:
    """Attributes left out or changed; in the whole text."""
    for word in ("__grid_constant__ ", "__shared__ ", "thread_local ", 'extern "C" '):
        for found in re.finditer(re.escape(word), code):
            if not code.startswith('extern "C" {', found.start()):
                yield found.start(), word, ""
    for found in re.finditer(r"alignas\((\d+)\)", code):
        yield found.start(1), found[1], str(int(found[1]) // 2)
        yield found.start(), found[0], ""
    for found in re.finditer(r"__(?:launch_bounds|cluster_dims)__\(([^()]*)\) ?", code):
        yield found.start(), found[0], ""
        yield found.start(1), found[1], f"{found[1]} + 32"
    for found in re.finditer(r"const gg_tensor_map &(?=\w)", code):
        yield found.start(), found[0], "const gg_tensor_map "
    for found in re.finditer(r"(?<=[a-z] \*)(?=(?:workspace|arrived)\b[^;]*\{)", code):
        yield found.start(), "", "__restrict__ "


KERNEL = {
    "wait": waits,
    "barrier count": barrier_counts,
    "cluster": clusters,
    "order": exchanged,
    "registers": registers,
    "descriptor": descriptors,
    "elected thread": elected,
}
