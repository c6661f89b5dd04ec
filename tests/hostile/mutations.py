"""Schedules damaged at random: in their bytes, and in their statements and words."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
SEEDS = (
    *(path.read_bytes() for path in sorted(EXAMPLES.rglob("*.sched"))),
    b"gemm S[i, j] = Q[d, i] * R[j, d]\nkernel scores\ndtype Q=f32 acc=f32\ntarget sm_90\n"
    b"assume J % 4 == 0\nassume lds == J\nrequire shared <= 48KiB\nlet t = {64, 128}\n"
    b"tile i=t j=t d={8, 16}\nbind x=j\nfuse_epilogue where(acc > 0 && i < j, acc, slope * acc)"
    b" + residual[i, j] - 1.5e-3 * gelu_tanh(beta * S[i, j])  # a comment\n",
    b"tile m=64 n=64 k=8\ncache_shared A[k,\n m] B  # over two lines\n"
    b"register_block m=8 n=8 interleave=4 order=zigzag\nvectorize A.global B width={2, 4}\n",
)
INTERESTING = (
    *(b"\0", b"\xff", b"\x1b[31m", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xc3", b"\xed\xa0\x80"),
    *(b"\n", b"\r", b"\\\n", b"#", b"=", b"{", b"}", b"(", b")", b"[", b"]", b"{}", b"()", b"[]"),
    *(b",", b".", b"-", b"+", b"*", b"/", b"%", b"<", b"<=", b"==", b"&&", b"||", b"!", b"??/"),
    *(b"0", b"-1", b"1e999", b"9" * 40, b"0x40", b"08", b"1.5", b"4096", b"65536", b"nan"),
    *(b" and ", b" or ", b" not ", b"acc", b"alpha", b"C[m, n]", b"where(", b"relu(", b"int"),
    *(b".shared", b".register", b"{64, 128}", b"__x", b"*/", b"//", b"{{7*7}}", b"'", b'"'),
)
Mutation = Callable[[random.Random, bytes], bytes]


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randint(0, len(data))


def flip_a_bit(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def set_a_byte(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def put_in(rng: random.Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + rng.choice(INTERESTING) + data[at:]


def take_out(rng: random.Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + data[at + rng.randint(1, 12) :]


def cut_off(rng: random.Random, data: bytes) -> bytes:
    return data[: _place(rng, data)]


def repeat(rng: random.Random, data: bytes) -> bytes:
    start = _place(rng, data)
    part = data[start : start + rng.randint(1, 20)]
    return data[:start] + part * rng.choice((2, 3, 200)) + data[start:]


BYTES: tuple[Mutation, ...] = (flip_a_bit, set_a_byte, put_in, take_out, cut_off, repeat)


def twice(rng: random.Random, parts: list[bytes]) -> list[bytes]:
    at = rng.randrange(len(parts))
    return [*parts[:at], parts[at], *parts[at:]]


def without(rng: random.Random, parts: list[bytes]) -> list[bytes]:
    at = rng.randrange(len(parts))
    return parts[:at] + parts[at + 1 :]


def swapped(rng: random.Random, parts: list[bytes]) -> list[bytes]:
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    changed = list(parts)
    changed[one], changed[other] = parts[other], parts[one]
    return changed


PARTS = (twice, without, swapped)


def of_statements(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    return b"\n".join(rng.choice(PARTS)(rng, lines))


def of_words(rng: random.Random, data: bytes) -> bytes:
    words = data.split(b" ")
    return b" ".join(rng.choice(PARTS)(rng, words))


def of_values(rng: random.Random, data: bytes) -> bytes:
    """Another number, or a word, in place of the value after an ``=``."""
    parts = data.split(b"=")
    at = rng.randrange(len(parts))
    values = (b"1", b"2", b"3", b"4", b"7", b"8", b"16", b"32", b"33", b"64", b"128", b"1024")
    rest = parts[at].lstrip(b"0123456789")
    parts[at] = rng.choice((*values, *INTERESTING)) + rest
    return b"=".join(parts)


def spliced(rng: random.Random, data: bytes) -> bytes:
    """The statements of two files, or the head of one and the tail of another."""
    other = rng.choice(SEEDS)
    if rng.random() < 0.5:
        return data[: _place(rng, data)] + other[_place(rng, other) :]
    lines = data.split(b"\n") + other.split(b"\n")
    return b"\n".join(rng.sample(lines, rng.randint(1, len(lines))))


STRUCTURE: tuple[Mutation, ...] = (of_statements, of_words, of_values, of_values, spliced)


def mutant(number: int, kinds: tuple[Mutation, ...]) -> bytes:
    """The ``number``-th damaged schedule: the same on every machine."""
    rng = random.Random(number)
    data = rng.choice(SEEDS)
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(kinds)(rng, data) if data else rng.choice(SEEDS)
    return data
