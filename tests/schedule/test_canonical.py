"""The same facts are one value and one text, however they are written."""

from __future__ import annotations

from itertools import permutations

import pytest

from gemmgen.pipeline import compile_schedule
from gemmgen.schedule.formatting import format_directive, format_schedule
from gemmgen.schedule.model import Schedule

from .helpers import SEVEN, schedule

CANONICAL = """\
gemm            C[m, n] = A[m, k] * B[k, n]
tile            m=128 n=128 k=8
cache_shared    A[k, m] B[k, n]
register_block  m=8 n=8
vectorize       A B C width=4
pad             A by=4
double_buffer   A B
fuse_epilogue   relu(acc + bias[n])
"""

SAME = {
    "operands in one statement or in two": (
        "vectorize A B width=4",
        "vectorize B width=4\nvectorize A width=4",
        "vectorize width=4 B A",
    ),
    "every hop is the bare operand": (
        "vectorize A width=4",
        "vectorize A.global A.shared width=4",
        "vectorize A.shared width=4\nvectorize A.global width=4",
    ),
    "the only hop of C is C": ("vectorize C width=4", "vectorize C.global width=4"),
    "a bare double_buffer is of the shared tile": (
        "double_buffer A",
        "double_buffer A.shared",
        "double_buffer A stages=2",
    ),
    "bare cache_shared keeps the global order": (
        "cache_shared B",
        "cache_shared B[k, n]",
        "cache_shared B[k,\n  n]",
    ),
    "an identity is not a directive": (
        "gemm C[m, n] = A[m, k] * B[k, n]",
        "vectorize A width=1",
        "pad A B by=0",
        "swizzle A by=1",
        "unroll k=0 tile_k=1",
        "launch_bounds blocks=0",
        "double_buffer A stages=1",
        "async_copy A B via=registers",
        "raster group=1",
        "split_k parts=1",
        "split_k parts=1 reduce=ordered groups=1",
        "assume N % 1 == 0",
        "kernel gemm",
        "target sm_80",
        "dtype C=f32 A=f32",
    ),
    "a default is left out": (
        "register_block m=8 n=8",
        "register_block n=8 m=8 order=rows",
    ),
    "an identity of one hop leaves the other": (
        "vectorize A.shared width=4",
        "vectorize A.global width=1\nvectorize A.shared width=4",
    ),
    "assumptions and requirements in any order": (
        "assume M % 8 == 0\nassume N % 4 == 0\nassume lda == K\n"
        "require shared <= 48KiB\nrequire threads <= 256",
        "require threads <= 256\nassume K == lda\nrequire shared <= 49152B\n"
        "assume N % 4 == 0\nassume M % 8 == 0",
    ),
    "letters of equal bits in any order": (
        "require same_bits over m n",
        "require same_bits over n m",
    ),
    "operators by sign or by word": (
        "fuse_epilogue where(acc > 0 && acc < 6 || !(m == n), 1, 0)",
        "fuse_epilogue where((acc > 0 and acc < 6) or not m == n, 1.0, 0e5)",
    ),
    "a let is its value": (
        "tile m=64 n=64",
        "let t = 64\ntile m=t n=t",
    ),
}


@pytest.mark.proof
def test_all_5040_orders_of_the_seven_words_are_one_schedule() -> None:
    lines = SEVEN.splitlines()
    first = schedule(SEVEN)
    assert {schedule("\n".join(order)) for order in permutations(lines)} == {first}
    assert format_schedule(first) == CANONICAL


@pytest.mark.parametrize("texts", SAME.values(), ids=SAME.keys())
def test_the_same_facts_are_one_value_and_one_text(texts: tuple[str, ...]) -> None:
    assert len({schedule(text) for text in texts}) == 1
    assert len({format_schedule(schedule(text)) for text in texts}) == 1


@pytest.mark.parametrize("texts", SAME.values(), ids=SAME.keys())
def test_the_canonical_text_reads_back(texts: tuple[str, ...]) -> None:
    value = schedule(texts[0])
    assert schedule(format_schedule(value)) == value


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "  # a comment [ ( {\n"),
        lambda text: "# head\n\n" + text.replace("\n", "\n\n\t# between\n"),
        lambda text: text.replace(" ", "\t \t"),
        lambda text: text.replace(", ", " , # k, then m\n   "),
        lambda text: text.rstrip("\n"),
    ],
    ids=["crlf", "cr", "bom", "comments", "above", "blanks", "continued", "no last line end"],
)
def test_line_ends_blanks_and_comments_say_nothing(rewrite) -> None:
    assert schedule(rewrite(SEVEN)) == schedule(SEVEN)


def test_a_gemm_line_alone_is_the_default_schedule() -> None:
    assert schedule("gemm C[m, n] = A[m, k] * B[k, n]") == Schedule()


@pytest.mark.parametrize(
    ("common", "by_name"),
    [
        ("dtype f16", "dtype A=f16 B=f16 C=f16"),
        ("dtype bf16", "dtype C=bf16 A=bf16 B=bf16 acc=f32"),
        ("dtype f64", "dtype A=f64 B=f64 C=f64 acc=f64"),
        ("dtype f16 C=f32", "dtype A=f16 B=f16"),
        ("dtype f32", ""),
    ],
)
def test_a_type_alone_is_that_of_every_tensor(common: str, by_name: str) -> None:
    rest = "tile m=16 n=16 k=8"
    one, other = (schedule(f"{line}\n{rest}\n") for line in (common, by_name))
    assert one == other and format_schedule(one) == format_schedule(other)
    assert compile_schedule(one).text == compile_schedule(other).text


def test_other_facts_are_other_values() -> None:
    texts = ("pad A by=4", "pad B by=4", "pad A by=8", "pad A B by=4", "vectorize A width=4")
    assert len({schedule(text) for text in texts}) == len(texts)


def test_directives_of_other_letters_keep_them() -> None:
    text = (
        "gemm            S[i, j] = Q[i, d] * K[j, d]\n"
        "bind            x=j\n"
        "tile            i=64 j=64 d=8\n"
        "cache_shared    Q[d, i] K[j, d]\n"
        "fuse_epilogue   S[i, j] * scale\n"
    )
    assert format_schedule(schedule(text)) == text
    shuffled = "\n".join(reversed(text.splitlines())).replace("Q[d, i] K[j, d]", "K Q[d, i]")
    assert schedule(shuffled) == schedule(text)


def test_every_head_is_printed_where_it_is_no_default() -> None:
    text = (
        "gemm            C[n, m] = A[k, m] * B[n, k]\n"
        "kernel          my_gemm\n"
        "target          sm_90a\n"
        "assume          M % 4 == 0\n"
        "assume          lda == M\n"
        "require         shared <= 48KiB\n"
        "require         threads <= 256\n"
        "require         registers <= 128\n"
        "require         spills == 0\n"
        "require         same_bits over m n\n"
        "raster          group=8\n"
    )
    assert format_schedule(schedule("\n".join(reversed(text.splitlines())))) == text


def test_groups_stand_by_their_first_operand() -> None:
    text = "vectorize B.shared width=2\nvectorize C B.global A width=4\ndouble_buffer B.register A"
    assert [format_directive(d) for d in schedule(text).directives] == [
        "vectorize A B.global C width=4",
        "vectorize B.shared width=2",
        "double_buffer A B.register",
    ]


def test_places_are_those_of_the_file() -> None:
    text = "vectorize B width=4\nvectorize A width=4"
    found = schedule(text)
    (directive,) = found.directives
    words = [text[o.span.start : o.span.end] for o in directive.operands]
    lines = [found.source.position(o.value_span.start) for o in directive.operands]
    assert (words, lines) == (["A", "B"], [(2, 13), (1, 13)])


@pytest.mark.parametrize("old", ["in_turn", "together"])
def test_a_value_with_its_former_name_has_the_same_canonical_form(old: str) -> None:
    """Schedules of the version before still parse; `fmt` writes the new name."""
    text = "gemm C[m, n] = A[m, k] * B[k, n]\nwarp_specialize producers=1 order={}\n"
    new = {"in_turn": "pingpong", "together": "cooperative"}[old]
    found = format_schedule(schedule(text.format(old)))
    assert found == format_schedule(schedule(text.format(new))) and old not in found
