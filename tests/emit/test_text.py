"""What a reader of the emitted text may rely on."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import get_args, get_origin

import pytest
from functions import EMITTED as FUNCTIONS
from functions import TYPES, name_of
from passes.schedules import CASES, EXAMPLES
from pipeline.running import Operands, Want, call, check, emitted

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.emit.kernel_view import BEGIN, END
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.ir.identifiers import CPP, language_word
from gemmgen.ir.thread_code import Node
from gemmgen.language import parse_schedule
from gemmgen.numerics.formats import F32
from gemmgen.pipeline import compile_source
from gemmgen.schedule.reserved import taken, vector_names

HANDWRITTEN = Path(__file__).parents[1] / "handwritten"
TEMPLATES = Path(__file__).parents[2] / "gemmgen" / "emit" / "templates"

MODELS = (Path(__file__).parents[2] / "gemmgen" / "sim").glob("*.h")
MODELED = frozenset(
    word
    for path in MODELS
    for word in re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8"))
    if language_word(word) not in (None, "used by the emitted text")
)
"""The words of CUDA that have a model on the CPU."""

WORDS = CPP - {"asm"} | MODELED - CPP | {"__restrict__", "x", "y", "val"}
"""What the text takes from C++ and CUDA: no header, and no instruction in a string but those of the
``gg_*`` functions, whose texts are as they are in ``emit/intrinsics``."""

DECLARATION = re.compile(
    r"(?:\b(?:auto|int|bool|float|double|char|cudaStream_t|cudaError_t|long long)"
    r"|\*const|\*__restrict__|\*)"
    r"\s*(\w+)"
)


def compiled_or_none(text: str) -> str | None:
    try:
        return compile_source(Source(text)).text
    except ScheduleError:
        return None


def code(text: str) -> str:
    """The text without its comments, directives of the preprocessor and strings."""
    bare = re.sub(r'//.*|^\s*#.*|"[^"]*"', "", text, flags=re.MULTILINE)
    return re.sub(r"\b\d[\w.]*(e-\d+f?)?", "", bare)


OF_MAPS = {"gg_encode_map", "gg_kept_map", "gg_tensor"}
"""The launcher's own function and types."""


def names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", code(text)))


def kernel_part(text: str) -> str:
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)]


def lines_of_code(text: str) -> int:
    """Lines that are neither blank, nor a comment (ours cite directives), nor a ``static_assert``,
    which no hand writes."""
    part = re.sub(r"static_assert\([^;]*;", "", kernel_part(text))
    lines = (line.strip() for line in part.splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


@pytest.mark.by_default(
    but=(
        "*parts*",
        "*ahead*",
        "*in pieces*",
        "warps *",
        "?, ?, ?, *",
        "a ragged*",
        "C by way *",
        "lanes *",
        "permuted *",
        "fragments *",
        "*rounds*",
        "asynchronous*",
        "tiles at a time*",
        "pieces *",
        "the old C *",
        "wgmma*",
        "mma.sync*",
    )
)
@pytest.mark.parametrize("name", CASES)
def test_uses_no_name_but_its_own_and_a_few_of_cuda(name: str) -> None:
    kernel = emitted(CASES[name].text)
    text, functions = kernel.text, {*OF_MAPS, "gg_tensor_map"}
    for function in (*TYPES, *FUNCTIONS):
        functions |= {name_of(function)} if function in text else set()
        text = text.replace(function, "")
    text = code(text)
    own = set(DECLARATION.findall(text)) | functions
    own |= set(re.findall(r"(\w+)(?:\[[^\]]*\])* = ", text))
    own |= set(re.findall(r", (\w+)\[", text))
    own |= set(re.findall(r"unsigned (?:short )?(\w+)", text))
    own |= {kernel.name, f"launch_{kernel.name}", f"{kernel.name}_detail"}
    own |= {launch.interface.name for launch in kernel.interface.before}
    own |= set(re.findall(r"__forceinline__ void (\w+)\(", text))
    if kernel.interface.maps:
        own |= set(re.findall(r"&\(?&?(\w+)", text)) | {"result"}
        own |= {f"{tensor.tensor}_map" for tensor in kernel.interface.maps}
    assert names(text) - own - WORDS == set()
    assert "#include" not in kernel.text


@pytest.mark.parametrize("name", CASES)
def test_is_tidy(name: str) -> None:
    text = emitted(CASES[name].text).text
    for line in text.split("\n"):
        assert line == line.rstrip() and "\t" not in line
        assert len(line) <= 100, line
    assert text.isascii() and text.endswith("\n") and "\n\n\n" not in text


@pytest.mark.proof
def test_lines_are_broken_whatever_the_epilogue_is(proof: bool) -> None:
    texts = map(compiled_or_none, (schedule_at(1, index) for index in range(50 if proof else 20)))
    lines = [line for text in texts if text is not None for line in text.split("\n")]
    # A line of the schedule is one line, so that it can be read again.
    lines = [line for line in lines if not line.startswith("//     fuse_epilogue ")]
    assert len(lines) > 1000 and [line for line in lines if len(line) > 100] == []


@pytest.mark.by_default(
    but=(
        "*parts*",
        "*ahead*",
        "*in pieces*",
        "warps *",
    )
)
@pytest.mark.parametrize("name", CASES)
def test_names_no_constant_that_it_does_not_use(name: str) -> None:
    text = code(emitted(CASES[name].text).text)
    for constant in re.findall(r"\b([A-Z]\w*) = ", text.split("extern")[0]):
        assert len(re.findall(rf"\b{constant}\b", text)) > 1, constant


BY_HAND = {
    name: name
    for name in ("uncoalesced", "naive", "tiled", "padded", "double_buffered", "register_blocked")
} | {"transposed": "padded", "fused": "register_blocked", "vectorized": "vectorized"}
"""Examples, and the handwritten kernels of their rungs: the epilogue of ``fused`` is shorter than
that of its rung's, and ``transposed`` lacks the pad of its."""


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_is_at_most_half_as_long_again_as_a_hand_would_write_it(name: str) -> None:
    by_hand = (HANDWRITTEN / f"{BY_HAND[name]}.cu").read_text(encoding="utf-8")
    ours, theirs = lines_of_code(emitted(EXAMPLES[name].text).text), lines_of_code(by_hand)
    assert ours <= 1.5 * theirs, f"{ours} lines to {theirs}: {ours / theirs:.2f}"


SGEMM_CUDA = {
    "naive": 17,
    "register_blocked": 69,
    "vectorized": 69,
    "warp_tiled": 130,
    "async_copy": 166,
}
"""Lines of code of the kernels of these rungs in siboehm/SGEMM_CUDA at 60cba6f: its files 1, 5, 6,
10 and 11, without comments and blank lines.  Ours have guards and epilogues besides."""


@pytest.mark.parametrize("name", SGEMM_CUDA)
def test_is_at_most_half_as_long_again_as_the_best_known_kernel_of_its_rung(name: str) -> None:
    part = kernel_part(emitted(EXAMPLES[name].text).text)
    lines = [line for line in part.splitlines() if line.strip() and "//" not in line.split()[0]]
    theirs = SGEMM_CUDA[name]
    assert len(lines) <= 1.5 * theirs, f"{len(lines)} to {theirs}: {len(lines) / theirs:.2f}"


def test_asynchronous_copies_are_said_in_fewer_lines_than_what_they_replace() -> None:
    """There is no hand-written kernel of this rung: the same schedule through registers is the
    measure, and it is long enough."""
    text = EXAMPLES["async_copy"].text
    without = re.sub("^async_copy.*\n", "", text, flags=re.MULTILINE)
    assert without != text
    ours, theirs = (lines_of_code(emitted(schedule).text) for schedule in (text, without))
    assert ours < theirs, f"{ours} lines to {theirs}"


def test_tensor_cores_take_few_more_lines_than_multiply_adds() -> None:
    """The cost of staging C in shared memory."""
    text = EXAMPLES["tensor_core"].text
    without = re.sub("^tensor_core.*", "register_block  m=8 n=16", text, flags=re.MULTILINE)
    without = without.replace("A.global B.global C width=8", "A.global B width=8")
    ours, theirs = (lines_of_code(emitted(schedule).text) for schedule in (text, without))
    assert ours <= 1.2 * theirs, f"{ours} lines to {theirs}"


def test_a_persistent_block_takes_few_more_lines_than_one_of_a_tile() -> None:
    """The loop, the accumulators' zeros, a barrier; in the launcher the device's
    multiprocessors."""
    text = EXAMPLES["persistent"].text
    without = text.replace("\npersistent", "")
    ours, theirs = (lines_of_code(emitted(schedule).text) for schedule in (text, without))
    assert theirs < ours <= theirs + 15, f"{ours} lines to {theirs}"


HELPERS = {"gg_shared"}
"""What other functions call."""


def test_functions_for_single_instructions_are_printed_where_they_are_called() -> None:
    for case in CASES.values():
        text = emitted(case.text).text
        before, kernel = text.split(BEGIN)
        called = set(re.findall(r"(gg_\w+)[(<]", kernel)) - OF_MAPS
        printed = set(re.findall(r"(gg_\w+)\(", before))
        assert printed - HELPERS == called
        for helper in HELPERS & printed:
            assert before.count(f"{helper}(") > 1
    schedule = (
        "tile m=32 n=32 k=8\ncache_shared A B\ndouble_buffer A B\nasync_copy A B via=cp_async\n"
    )
    text = emitted(schedule).text
    assert "gg_copy_async_4(" in text and "cp.async.ca." in text and "gg_copy_async_16" not in text


def test_templates_decide_nothing() -> None:
    paths = sorted(TEMPLATES.rglob("*.j2"))
    assert paths
    for path in paths:
        template = path.read_text(encoding="utf-8")
        assert set(re.findall(r"{%-?\s*(\w+)", template)) <= {"for", "endfor"}, path.name
        asked = re.findall(r"\bif\b(.*?)\belse\b", " ".join(re.findall(r"{{(.*?)}}", template)))
        assert {each.strip() for each in asked} <= {"loop.last"}, path.name


def test_every_kind_of_statement_has_a_template() -> None:
    kinds = {get_origin(kind) or kind for kind in get_args(Node)}
    names = {path.stem for path in (TEMPLATES / "nodes").iterdir()}
    assert names == {kind.__name__ for kind in kinds}


@cache
def emitted_names() -> list[str]:
    """Every name that a text of these schedules gives to something."""
    found: set[str] = set()
    for name, case in CASES.items():
        if name != "other letters":
            found |= names(emitted(case.text).text)
    given = {"A", "B", "C", "m", "n", "k", "acc", "alpha", "beta", "x", "y"}
    return sorted(found - given - {"bias", "residual", "row", "s", "ldresidual"})


TAKEN = {
    "the epilogue": "gemm C[m, n] = A[m, k] * B[k, n]\nfuse_epilogue acc + {}\n",
    "a letter": "gemm C[{0}, n] = A[{0}, k] * B[k, n]\n",
    "another letter": "gemm C[m, n] = A[m, {0}] * B[{0}, n]\n",
    "a tensor": "gemm C[m, n] = A[m, k] * {}[k, n]\n",
}


def plus_scalar(name: str) -> Want:
    """The reference of ``acc + name``."""

    def want(acc: F32, c: F32, given: Operands) -> F32:
        return acc + given[name]

    return want


FAILED = "failed"
"""The launcher's error while it encodes a map, where no parameter is named."""
LAUNCHER = "launch_gemm"
"""A letter of this name is a variable of the kernel, above the launcher."""
ENCODER = r"template <int RANK> struct gg_tensor {.*?\ncudaError_t gg_encode_map.*?\n}"
"""The launcher's function that encodes tensor maps, and its types."""


def names_in_functions() -> set[str]:
    """Parameters and variables of the functions around these kernels, and what they call."""
    found: set[str] = set()
    for case in CASES.values():
        text = emitted(case.text).text
        above = text.partition('extern "C" __global__')[0]
        found |= (
            names(re.findall(ENCODER, text, re.DOTALL)[0]) if "gg_encode_map" in text else set()
        )
        for members in re.findall(r"\b(?:config|overlap)\.([\w.]+)", text):
            found |= set(members.split("."))
        for pre_pass in text.split('extern "C" __global__')[2:]:
            found |= names(pre_pass.partition("\n}\n")[0])
        constants = re.findall(r"\bconstexpr int ([^;]*);", above)
        found |= names(above) - set(re.findall(r"(\w+) = ", " ".join(constants)))
    return found


def derived(gemm_line: str) -> set[str]:
    return set(taken(parse_schedule(Source(gemm_line)).gemm))


def not_derived(use: str) -> set[str]:
    """What texts derive from tensors and letters that the schedule of ``use`` lacks."""
    others = derived("gemm C[m, n] = A[m, k] * B[k, n]\n") | derived(
        "gemm y[m, n] = A[m, k] * x[k, n]\n"
    )
    scaled = "gemm C[m, n] = (A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/128, k/128])\n"
    others |= derived(scaled) | {"SA_frag", "SB_frag"}
    others |= vector_names("bias").keys()
    return others - derived(TAKEN[use].format("other"))


@pytest.mark.proof
@pytest.mark.parametrize("use", TAKEN)
def test_the_names_it_uses_can_be_given_to_nothing_else(use: str, exhaustive: bool) -> None:
    """Either the schedule is refused, as mostly, or the kernel is right all the same: at one of
    three uses of each name it runs, at the next one of the next name."""
    free: set[str] = set()
    tried, turn = emitted_names()[:: 1 if exhaustive else 3], [*TAKEN].index(use)
    for at, name in enumerate(tried):
        text = TAKEN[use].format(name)
        try:
            kernel = compile_source(Source(text))
        except ScheduleError:
            continue
        if (at + turn) % 3 == 0:
            want = plus_scalar(name) if use == "the epilogue" else None
            check(kernel, call(3, 35, 4, 0.7, -1.0), want)
        free.add(name)
    free -= not_derived(use)
    harmless = names_in_functions() | {FAILED, LAUNCHER}
    assert free <= harmless and len(free) <= len(tried) / 4, sorted(free)


@pytest.mark.by_default("tm", "thread_m", "ldc")
@pytest.mark.parametrize("letter", ("bm", "tm", "reg_n", "tile_n", "next_k", "thread_m", "ldc"))
def test_refuses_a_letter_that_takes_the_name_of_another_thing(letter: str) -> None:
    for text in (
        f"gemm C[m, n] = A[m, {letter}] * B[{letter}, n]\ntile m=32 n=32 {letter}=8\n",
        f"gemm C[m, {letter}] = A[m, k] * B[k, {letter}]\ntile m=32 {letter}=32 k=8\n",
    ):
        try:
            kernel = compile_source(Source(text))
        except ScheduleError:
            continue
        check(kernel, call(33, 35, 9, 0.7, -1.0))


@pytest.mark.by_default("a_rather_long_16")
@pytest.mark.parametrize("letter", ("a_rather_long_16", "x", "e_"))
def test_letters_of_any_length_do(letter: str) -> None:
    text = (
        f"gemm C[m, n] = A[m, {letter}] * B[{letter}, n]\ntile m=32 n=64 {letter}=8\n"
        f"cache_shared A[{letter}, m] B\nregister_block m=4 n=8\ndouble_buffer A B stages=3\n"
    )
    check(emitted(text), call(33, 70, 19, 0.7, -1.0, pad=1))
