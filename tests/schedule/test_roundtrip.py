"""Random schedules: the canonical text reads back, in any order of its lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gemmgen.base.source import Source
from gemmgen.language import fmt_source
from gemmgen.schedule.formatting import format_schedule

from .helpers import schedule

NAMES = [
    ("m", "n", "k", "A", "B", "C"),
    ("i", "j", "d", "Q", "K", "S"),
    ("row", "col", "x", "p", "q", "r"),
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    m, n, k, a, b, c = draw(st.sampled_from(NAMES))
    flip = lambda one, two: draw(st.sampled_from([f"{one}, {two}", f"{two}, {one}"]))  # noqa: E731
    size = st.integers(1, 64)

    def factor(tensor: str, free: str) -> str:
        access = f"{tensor}[{flip(free, k)}]"
        scales = flip(
            f"{k}/{draw(st.integers(2, 256))}", draw(st.sampled_from([free, f"{free}/9"]))
        )
        return f"({access} * s{tensor}[{scales}])" if draw(st.booleans()) else access

    lines = [f"gemm {c}[{flip(m, n)}] = {factor(a, m)} * {factor(b, n)}"]
    every = [
        f"bind x={draw(st.sampled_from([m, n]))}",
        f"tile {m}={draw(size)} {n}={draw(size)} {k}={draw(size)}",
        f"cache_shared {a}[{flip(m, k)}]",
        f"cache_shared {b}",
        f"warp_tile {m}={draw(size)} {n}={draw(size)}",
        f"register_block {m}={draw(size)} {n}={draw(size)} interleave={draw(size)}",
        f"vectorize {a}.global {c} width={draw(st.integers(1, 16))}",
        f"vectorize {a}.shared {b} width={draw(st.integers(1, 16))}",
        f"pad {b} by={draw(st.integers(0, 9))}",
        f"pad {a} by={draw(st.integers(0, 9))}",
        f"double_buffer {a} {b}.register stages={draw(st.integers(1, 4))}",
        f"raster group={draw(st.integers(1, 4))}",
        f"fuse_epilogue relu(acc * s + bias[{draw(st.sampled_from([m, n]))}])",
        "kernel some_kernel",
        f"assume {n.upper()} % {draw(st.integers(1, 9))} == 0",
        f"require shared <= {draw(st.integers(0, 99999))}",
        "target sm_90",
    ]
    lines += draw(st.lists(st.sampled_from(every), unique=True))
    return "".join(line + "\n" for line in draw(st.permutations(lines)))


@given(texts())
def test_the_canonical_text_reads_back(text: str) -> None:
    value = schedule(text)
    canonical = format_schedule(value)
    assert schedule(canonical) == value
    assert format_schedule(schedule(canonical)) == canonical


@given(texts())
def test_fmt_keeps_the_meaning_and_is_idempotent(text: str) -> None:
    formatted = fmt_source(Source(text))
    assert schedule(formatted) == schedule(text)
    assert fmt_source(Source(formatted)) == formatted
