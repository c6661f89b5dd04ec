"""Findings: what a checked run finds wrong with a kernel's text, and their sentences."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

Kind = Literal[
    "race",
    "two owners",
    "out of bounds",
    "never written",
    "misaligned",
    "divergent barrier",
    "arithmetic",
    "under way",
    "not waited for",
    "divergent warp",
    "deadlock",
    "wrong barrier",
    "wrong copy",
    "wrong registers",
    "not fenced",
    "block ended",
    "too early",
    "wrong multiplication",
]
Actor = Literal["thread", "TMA", "tensor core"]


@record
class Location:
    """A thread at a line of the text.

    ``thread`` is (x, y) in block ``block``.  ``line`` counts from 1 in the emitted file, ``text``
    is that line, and ``directive`` is what the nearest comment of that code cites
    (``double_buffer A B``); they are 0 and empty if the line is not known.  ``by`` is who does it:
    TMA or a tensor core, which the thread has asked for it.
    """

    block: int
    thread: tuple[int, int]
    write: bool
    line: int
    text: str
    directive: str
    by: Actor = "thread"

    def at(self) -> str:
        if not self.line:
            return "an unknown line"
        origin = f" ({self.directive})" if self.directive else ""
        return f"line {self.line} `{self.text}`{origin}"

    def who(self) -> str:
        return f"thread ({self.thread[0]}, {self.thread[1]})"

    def does(self) -> str:
        if self.by != "thread":
            engine = self.by if self.by == "TMA" else f"the {self.by}"
            return f"has {engine} {'write' if self.write else 'read'}"
        return "writes" if self.write else "reads"


@record
class Finding:
    """One mistake of a kernel.

    ``name`` is the tensor's or the shared array's, ``index`` the element's (row, column; as many
    as the array has), outside the shape if the access is; both are empty if the mistake concerns
    no array.  ``bytes`` is the size of the access.  ``other`` is the conflicting access (a race,
    two owners, a divergent or wrong barrier or warp), a thread with another wait (a deadlock), or
    the asynchronous copy that is under way.
    ``declared`` is what the comment over a shared array's declaration cites.
    """

    kind: Kind
    name: str
    index: tuple[int, ...]
    bytes: int
    access: Location
    other: Location | None
    detail: str
    declared: str = ""

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of its accesses."""
        return tuple(access.line for access in self._accesses() if access.line)

    @property
    def directives(self) -> tuple[str, ...]:
        """What the comments over those lines and over the array's declaration cite."""
        cited = (*(access.directive for access in self._accesses()), self.declared)
        return tuple(dict.fromkeys(directive for directive in cited if directive))

    @property
    def element(self) -> str:
        """``A_shared[0, 3, 5]`` or ``C[3, 5]``."""
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name

    def text(self) -> str:
        """A sentence for a person."""
        access, other = self.access, self.other
        if self.kind in ("divergent barrier", "divergent warp") and other is not None:
            return _divergence(self.kind, access, other, self.detail)
        where = f"in block {access.block}, at {access.at()}"
        if self.kind == "deadlock":
            return f"deadlock {where}: {self.detail}"
        if self.kind == "wrong barrier":
            by_others = f"; {other.who()} waits at {other.at()}" if other is not None else ""
            return f"{self.kind}: {self.detail}: {access.who()} {where}{by_others}"
        if not self.name:
            return f"{self.kind}: {self.detail}: {access.who()} {where}"
        wide = f" by {self.bytes} bytes" if self.bytes > 4 else ""
        about = self.detail
        if self.declared and other is None:
            about = f"{about}; {self.declared}" if about else self.declared
        extra = f" ({about})" if about else ""
        does = access.does()
        if self.kind == "not waited for":
            does = f"leaves with a copy under way {'to' if access.write else 'from'}"
        sentence = f"{self.kind}: {access.who()} {does} {self.element}{wide}{extra} {where}"
        if other is None:
            return sentence
        if self.kind == "under way" and other.by == "TMA":
            return f"{sentence}; the copy of {other.who()} may not have ended, at {other.at()}"
        if self.kind == "under way":
            return f"{sentence}; {other.who()} has not waited for its copy to it, at {other.at()}"
        if self.kind == "not fenced":
            unfenced = "with no fence.proxy.async"
            return f"{sentence}; {other.who()} {other.does()} it {unfenced}, at {other.at()}"
        block = f" of block {other.block}" if other.block != access.block else ""
        barrier = ", with no barrier between" if self.kind == "race" and not block else ""
        return f"{sentence}; {other.who()}{block} {other.does()} it{barrier}, at {other.at()}"

    def _accesses(self) -> tuple[Location, ...]:
        return (self.access,) if self.other is None else (self.access, self.other)


def summary(findings: tuple[Finding, ...]) -> str:
    """The first finding, and how many more there are."""
    more = len(findings) - 1
    also = f" ({more} more {'locations' if more > 1 else 'location'})" if more else ""
    return findings[0].text() + also


def _divergence(kind: Kind, waits: Location, other: Location, detail: str) -> str:
    if detail:
        return (
            f"{kind} in block {waits.block}: {waits.who()} comes from {other.at()} to "
            f"{waits.at()}, where its warp must have converged, and others of it do not: {detail}"
        )
    warp = kind == "divergent warp"
    for_what, of_what = (" for its warp", " of that warp") if warp else ("", "")
    does = f"waits at line {other.line}" if other.line else "has left the kernel"
    origin = f" ({waits.directive})" if waits.directive else ""
    return (
        f"{kind} in block {waits.block}: {waits.who()} waits{for_what} at line {waits.line}, "
        f"but {other.who()}{of_what} {does}{origin}"
    )
