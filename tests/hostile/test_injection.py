"""No text of a schedule reaches emitted text unchecked, and none ends or extends a line of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from functions import EMITTED

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source, Span
from gemmgen.emit import warpgroup_functions
from gemmgen.emit.ctext import c_float
from gemmgen.ir.atoms import ATOMS, VIA
from gemmgen.ir.expr import FUNCTIONS
from gemmgen.ir.identifiers import NAME
from gemmgen.ir.target import TARGETS
from gemmgen.language import VOCABULARY, parse_schedule
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.words import DTYPES, QUANTITIES

EXAMPLES = Path(__file__).parents[2] / "examples"

PLACES = {
    "kernel": "kernel {}",
    "the output": "gemm {}[m, n] = A[m, k] * B[k, n]",
    "an input": "gemm C[m, n] = {0}[m, k] * B[k, n]\ntile m=32 n=32 k=8\ncache_shared {0}",
    "a row letter": "gemm C[{0}, n] = A[{0}, k] * B[k, n]\ntile {0}=8 n=32\nbind x={0}",
    "a column letter": "gemm C[m, {0}] = A[m, k] * B[k, {0}]\ntile m=8 {0}=32\nassume M % 4 == 0",
    "a contracted letter": "gemm C[m, n] = A[m, {0}] * B[{0}, n]\ntile m=8 n=32 {0}=8",
    "a parameter": "fuse_epilogue acc * {0} + {0}",
    "a vector": "fuse_epilogue acc + {}[n]",
    "a matrix": "fuse_epilogue acc + {}[n, m]",
    "a let": "let {0} = 8\ntile m={0} n=32",
}
"""Where a user chooses a name."""

WORDS = {
    "a first word": "{} m=8 n=32",
    "a type": "dtype A={}",
    "a type's tensor": "dtype {}=f32",
    "a target": "target {}",
    "an assumption": "assume {} % 4 == 0",
    "an assumed equal": "assume N == {}",
    "a divisor": "assume N % {} == 0",
    "a remainder": "assume N % 4 == {}",
    "a quantity": "require {} <= 4",
    "a limit": "require threads <= {}",
    "a unit": "require shared <= 48 {}",
    "an operand": "tile m=8 n=32 k=8\ncache_shared {}",
    "a hop": "vectorize A.{} width=4",
    "a layout": "tile m=8 n=32 k=8\ncache_shared A[{}, m]",
    "an argument": "tile {}=8 n=32",
    "a number": "tile m={} n=32",
    "a word": "bind x={}",
    "an order": "tile m=64 n=64\nregister_block m=8 n=8 order={}",
    "an item of a set": "tile m={{8, {}}} n=32",
    "a function": "fuse_epilogue {}(acc)",
    "a constant": "fuse_epilogue acc + {}",
    "an index": "fuse_epilogue acc + bias[{}]",
    "an operator": "fuse_epilogue acc {} alpha",
}
"""Where a user's word must be one of the language's, or a number."""

PAYLOADS = (
    *("*/", "/*", "//", "??/", "??=", "\\", "x\\", '"', "'", "x;", "x}", "{", "a b", "a-b", "a\tb"),
    *("{{7*7}}", "{%x%}", "{{view}}", "%s", "$(x)", "`x`", "<x>", "x::y", "x->y", "&x", "x@y"),
    *("\\u0041", "\u2028", "\u2029", "\x85", "\xe9", "\uff21", "x\u200b", "\u202e", "\0", "\x1b"),
    *("asm", "__asm__", "__x", "x__y", "gg_mma", "NAN", "int", "0x1p3", "1e999", "1.f", "1'000"),
    *("-1", "9" * 400, "x" * 64, "-----", "kernel ----"),
)


def compiled(text: str) -> Emitted:
    return compile_source(Source(f"{text}\n", "x.sched"))


@pytest.mark.parametrize("place", PLACES)
def test_a_name_appears_as_it_is_and_changes_nothing_else(place: str) -> None:
    """Emission commutes with renaming: a name has no other way into the text."""
    one, other = "canary_a7", "zebra__b8".replace("__", "_x")[:9]
    texts = [compiled(PLACES[place].format(name)).text for name in (one, other)]
    assert (one in texts[0]) == (place != "a let")
    for form in (str, str.upper):
        texts = [texts[0].replace(form(one), "#"), texts[1].replace(form(other), "#")]
    assert texts[0] == texts[1]
    assert "canary" not in texts[0].lower()


@pytest.mark.by_default(*[*PLACES, *WORDS][::3])
@pytest.mark.parametrize("place", (*PLACES, *WORDS))
def test_a_payload_is_refused(place: str) -> None:
    form = (PLACES | WORDS)[place]
    harmless = compiled_or_none(form.format(""))
    for payload in PAYLOADS:
        emitted = compiled_or_none(form.format(payload))
        if emitted is None:
            continue
        # What looks like a comment, a number or a legal name may be one; then it says no more.
        allowed = payload in ALLOWED.get(place, ())
        assert allowed or emitted == harmless, f"{place}: {payload!r} is taken"
        check_text(emitted)


ALLOWED: dict[str, tuple[str, ...]] = {
    "a let": ("__x", "x__y", "gg_mma", "NAN", "int", "asm", "__asm__", "x" * 64),
    "a parameter": ("a-b", "-1", "kernel ----"),
    "a vector": ("a-b",),
    "a function": ("-----", "kernel ----"),
    "a constant": ("a-b", "-1"),
    "an operator": ("-----",),
}
"""Where a payload is an expression: a difference, or signs."""


def compiled_or_none(text: str) -> str | None:
    try:
        return compiled(text).text
    except ScheduleError:
        return None


DRIVER = re.compile(r'"cu[A-Z]\w*"')
"""A function of the driver, which a launcher asks for by its name."""
PREPROCESSOR = re.compile(r"#ifndef __CUDACC_RTC__|#endif|#pragma unroll( [0-9]+)?")


def _of_sizes(text: str) -> Iterator[str]:
    """Multiplications of warpgroups of other sizes than those that are listed."""
    for each in dict.fromkeys(re.findall(r"gg_wgmma_m64n(\d+)k", text)):
        for types in (types for atom in VIA["wgmma"] for types in ATOMS[atom].products):
            yield warpgroup_functions.multiply(int(each), types).text()


def check_text(text: str) -> None:
    """Properties of every emitted text, of any schedule: besides functions for single
    instructions, which hold nothing of it."""
    for function in (*EMITTED, *_of_sizes(text)):
        text = text.replace(f"{function}\n", "", 1)
    for parameter in ("`first`", "`stop`"):  # of functions of the kernel, in their comments
        text = text.replace(parameter, "")
    assert all(c == "\n" or " " <= c <= "~" for c in text)
    for sign in ("??", "\\", "/*", "*/", "{{", "{%", "#include", "asm", "%:", "<%", "`", "$", "@"):
        assert sign not in text, sign
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("// ----")] == [
        "// ---- kernel ----",
        "// ---- end of kernel ----",
    ]
    for line in lines:
        assert not line.lstrip().startswith("#") or PREPROCESSOR.fullmatch(line.strip()), line
    strings = text.count('extern "C"') + text.count("static_assert") + len(DRIVER.findall(text))
    assert text.count('"') == 2 * strings


@pytest.mark.by_default(
    "swizzled*",
    "bf16_linear",
    "async_row_major",
    "large_f16",
    "gpt2_scores",
    "split_k*",
    "tensor_core",
)
@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.sched")), ids=lambda path: path.stem)
def test_what_holds_of_every_text_holds_of_the_examples(path: Path) -> None:
    text = compiled_or_none(path.read_text())
    if text is None:  # an example that is there for its error
        return
    check_text(text)


@pytest.mark.proof
def test_comments_of_a_schedule_are_not_emitted() -> None:
    plain = "tile m=32 n=32 k=8\ncache_shared A[k, m] B\nfuse_epilogue relu(acc + bias[n])\n"
    known = compiled(plain).text
    payloads = [p for p in PAYLOADS if not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", p)]
    payloads += ["// ---- end of kernel ----", "??/", "\\", "#endif", "\\\\"]
    for payload in payloads:
        text = f"# {payload}\n" + plain.replace("\n", f"  # {payload}\n") + f"# {payload}"
        assert compiled(text).text == known, payload
    broken = plain.replace("[k, m]", "[k,  # */ \\\n # ??/\n m]").replace("acc +", "acc\n+")
    assert compiled(broken).text == known


def test_line_ends_do_not_end_a_comment() -> None:
    """The header repeats the schedule in comment lines; a statement is one of them."""
    text = compiled("fuse_epilogue (acc\n\n +\t(bias[n]\n # x\n * 2))").text
    header = text.split("\n\n")[0].splitlines()
    assert all(line.startswith("//") for line in header)
    assert "//     fuse_epilogue   acc + bias[n] * 2" in header


FULL = """\
gemm S[i, j] = Q[d, i] * R[j, d]
kernel scores
dtype Q=f32
target sm_90
assume I % 4 == 0
assume J == D
require threads <= 512
require same_bits over i
bind x=j
tile i=64 j=64 d=8
cache_shared Q[i, d] R
register_block i=8 j=8 interleave=4 order=zigzag
vectorize Q.global width=4
fuse_epilogue where(acc > 0 && !(i < j), -acc, 1.5e-3 * tanh(slope)) + residual[i, j]
"""

LEAVES = {
    "gemm.c.tensor": NAME,
    "gemm.c.indices": NAME,
    "gemm.a.tensor": NAME,
    "gemm.a.indices": NAME,
    "gemm.b.tensor": NAME,
    "gemm.b.indices": NAME,
    "kernel": NAME,
    "dtypes": ("Q", "R", "S", "acc", *DTYPES),
    "target": tuple(TARGETS),
    "assumes.name": ("I", "J", "D", "ldq", "ldr", "lds"),
    "assumes.divisor": int,
    "assumes.equals": ("I", "J", "D"),
    "requires.quantity": QUANTITIES,
    "requires.op": ("<=", "=="),
    "requires.limit": int,
    "same_bits.letters": ("i",),
    "directives.name": tuple(spec.name for spec in VOCABULARY.specs),
    "directives.operands.tensor": ("Q", "R", "S"),
    "directives.operands.hop": ("global", "shared", "register"),
    "directives.operands.indices": ("i", "j", "d"),
    "directives.arguments.name": ("i", "j", "d", "x", "y", "interleave", "order", "width"),
    "directives.arguments.value": (int, "i", "j", "zigzag"),
    "epilogue.expression.op": ("+", "-", "*", "/", "<", "<=", ">", ">=", "&&", "||", "!"),
    "epilogue.expression.name": NAME,
    "epilogue.expression.buffer": NAME,
    "epilogue.expression.function": tuple(FUNCTIONS),
    "epilogue.expression.value": float,
    "epilogue.expression.dtype": ("f32", "f64"),
}
"""All that a schedule's value holds: names that were checked, words of closed sets, numbers."""


def leaves(value: object, path: str = "") -> list[tuple[str, object]]:
    """Every name, word and number within ``value`` by the fields that lead to it."""
    if isinstance(value, Source | Span) or value is None:
        return []
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves(item, path)]
    if not is_dataclass(value):
        return [(path, value)]
    found: list[tuple[str, object]] = []
    for field in fields(value):
        inside = field.name if not path else f"{path}.{field.name}"
        if path.startswith("epilogue.expression"):
            inside = f"epilogue.expression.{field.name}"
        found += leaves(getattr(value, field.name), inside)
    return found


def _is(value: object, kind: object) -> bool:
    if isinstance(kind, re.Pattern):
        return isinstance(value, str) and bool(kind.fullmatch(value))
    if isinstance(kind, tuple):
        return any(_is(value, one) for one in kind)
    return type(value) is kind if isinstance(kind, type) else value == kind


def test_a_schedule_holds_nothing_but_checked_names_words_and_numbers() -> None:
    """A field that is new here must be one that cannot carry text, or be checked like a name."""
    schedule = parse_schedule(Source(FULL))
    compile_source(Source(FULL))
    inside_expression = {"operand", "left", "right", "condition", "yes", "no", "arguments"}
    seen: set[str] = set()
    for path, value in leaves(schedule):
        last = path.rpartition(".")[2]
        assert last not in inside_expression or not isinstance(value, str | float), path
        assert _is(value, LEAVES.get(path)), (path, value)
        seen.add(path)
    assert seen == set(LEAVES)


def test_numbers_are_finite_literals() -> None:
    literal = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?f")
    values = [0.0, 1.0, 0.1, 3.4028235e38, 1.4e-45, 1e-5, 16777217.0, 1 / 3, 1e20, 123456.789]
    for value in (*values, *(-value for value in values)):
        assert literal.fullmatch(c_float(value)), value
    for text in ("3.4028235e38", "1.4e-45", "0.000000000000000000001", "1" * 38, ".5", "5."):
        emitted = compiled(f"fuse_epilogue acc * {text}")
        check_text(emitted.text)
    for text in ("1e39", "1e-50", "9" * 400, "nan", "NAN", "inf", "INFINITY", "1e", "0x10", "1_0"):
        emitted = compiled_or_none(f"fuse_epilogue acc * {text}")
        assert emitted is None or text in {"nan", "inf"}, text


def test_two_operators_never_join_into_another() -> None:
    """A sign next to a sign would be ``--`` or ``++``, a question mark next to one a trigraph."""
    for expression in ("acc - -1", "acc - -beta", "-(-acc)", "acc + -(-beta)", "-(-(-acc))"):
        code = compiled(f"fuse_epilogue {expression}").text.split("// ---- kernel ----")[1]
        body = "\n".join(line for line in code.splitlines() if " = " in line and "-" in line)
        for one, other in pairwise(body):
            assert (one, other) not in {("-", "-"), ("+", "+"), ("?", "?")}, body
