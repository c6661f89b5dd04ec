"""The bad-input table: contents of files, and the expected outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.language import VOCABULARY
from gemmgen.pipeline import compile_source
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec
from gemmgen.schedule.words import LATER


@dataclass(frozen=True)
class Row:
    """A file, and fragments of what is said about it; None where it is a right schedule.

    ``place`` is the line and column of the first mistake, if the row names it.
    """

    name: str
    text: str | bytes
    said: tuple[str, ...] | None
    place: tuple[int, int] | None = None

    @property
    def data(self) -> bytes:
        return self.text if isinstance(self.text, bytes) else self.text.encode()


GEMM = "gemm C[m, n] = A[m, k] * B[k, n]\n"
TOGETHER = {
    "bind": "bind x=n",
    "tile": "tile m=64 n=128 k=16",
    "cache_shared": "cache_shared A[k, m] B",
    "warp_tile": "warp_tile m=32 n=64",
    "register_block": "register_block m=8 n=8 interleave=4",
    "vectorize": "vectorize A B C width=4",
    "pad": "pad A by=4",
    "swizzle": "swizzle B by=2 every=1 chunk=4",
    "double_buffer": "double_buffer A B stages=2",
    "unroll": "unroll k=1",
    "launch_bounds": "launch_bounds blocks=1",
    "raster": "raster group=8",
    "split_k": "split_k parts=6 groups=2",
    "cluster": "cluster m=1 n=1",
}
"""Directives with numbers, and values that go together."""
APART = {
    "tensor_core": {
        "dtype": "dtype A=f16 B=f16",
        "tile": "tile m=64 n=64 k=16",
        "cache_shared": "cache_shared A B",
        "tensor_core": "tensor_core via=mma promote=16",
    },
}
"""Those that some of them exclude, each in its own right schedule, a line each."""


def bare(argument: ArgumentSpec) -> str:
    """``m`` of ``<m>``: its name in a schedule with the usual letters."""
    return argument.name.replace("<", "").replace(">", "")


def idle(spec: DirectiveSpec) -> str:
    """The directive with each argument that it needs at its identity, so that it asks for nothing
    and goes with everything."""
    needed = [argument for argument in spec.arguments if argument.required]
    assert needed and all(one.identity is not None for one in needed), f"TOGETHER lacks {spec.name}"
    return " ".join([spec.name, *(f"{bare(one)}={one.identity}" for one in needed)])


RUNGS = {
    spec.name: TOGETHER.get(spec.name) or idle(spec)
    for spec in VOCABULARY.specs
    if spec.name in TOGETHER or any(argument.kind == "int" for argument in spec.arguments)
    if spec.name not in APART
}
"""A right schedule of every directive with a number, a line each."""

HUGE = "1" + "0" * 5000
NUMBERS = {
    "0": "0",
    "-1": "-1",
    "1.5": "1.5",
    "7": "7",
    "2^63": str(2**63),
    "10^5000": HUGE,
    "0x40": "0x40",
    "08": "08",
    "a power": "2^63",
    "an exponent": "1e3",
    "nothing": "",
    "Arabic digits": "\u0664",
    "nan": "nan",
    "a quotient": "128/2",
}
TAKEN = {
    ("register_block", "<m>", "7"): False,
    ("pad", "by", "0"): True,
    ("double_buffer", "stages", "7"): True,
    ("swizzle", "by", "7"): False,
    ("swizzle", "every", "7"): False,
    ("swizzle", "chunk", "7"): False,
    ("unroll", "<k>", "0"): True,
    ("launch_bounds", "blocks", "0"): True,
    ("raster", "group", "7"): True,
    ("split_k", "parts", "7"): False,
    ("split_k", "groups", "7"): False,
    ("cluster", "<m>", "7"): False,
    ("cluster", "<n>", "7"): False,
    ("tensor_core", "promote", "0"): True,
    ("tensor_core", "promote", "7"): False,
}
"""Numbers of the table that are values of an argument, or pass its range and are refused later."""

NAMES = {
    "a b": "a b",
    "int": "int",
    "NAN": "NAN",
    "float4": "float4",
    "threadIdx": "threadIdx",
    "__x": "__x",
    "k(){}": "k(){}",
    "{{7*7}}": "{{7*7}}",
    "end of comment": "*/",
    "a path": "../x",
    "300 characters": "x" * 300,
    "a string": '"x"',
    "a backslash": "x\\",
    "a trigraph": "x??/",
    "a dollar": "x$",
    "full width": "\uff23\uff21",
    "look-alike": "\u0410",
    "a digit first": "4x",
    "include": '#include "/etc/passwd"',
}
NAME_PLACES = {
    "kernel": "kernel {}\n",
    "tensor": "gemm C[m, n] = {}[m, k] * B[k, n]\n",
    "letter": "gemm C[{0}, n] = A[{0}, k] * B[k, n]\n",
    "scalar": "fuse_epilogue acc * {}\n",
    "vector": "fuse_epilogue acc + {}[n]\n",
    "let": "let {0} = 8\ntile m={0} n=128\n",
}

LET_NAMES = ("int", "NAN", "float4", "threadIdx", "__x", "300 characters")
"""A ``let`` is gone before any text is emitted, so its name may be any word."""


def written(spec: DirectiveSpec, argument: ArgumentSpec, value: str) -> str:
    """The right schedule with ``value`` for one argument of one directive."""
    name = bare(argument)
    lines = APART.get(spec.name, RUNGS)
    line = lines[spec.name]
    parts = [f"{name}={value}" if p.startswith(f"{name}=") else p for p in line.split(" ")]
    if not any(part.startswith(f"{name}=") for part in parts):
        parts.append(f"{name}={value}")
    rungs = lines | {spec.name: " ".join(parts)}
    return GEMM + "".join(f"{text}\n" for text in rungs.values())


def derived(spec: DirectiveSpec, argument: ArgumentSpec, label: str, text: str) -> bool | None:
    """What ``TAKEN`` says of a number of a directive that is ``idle`` in the table: a number in
    range leaves it so, or asks for something that this schedule may refuse."""
    value = int(label) if label in ("0", "7") else -1
    if spec.name in (*TOGETHER, *APART) or not argument.minimum <= value <= argument.maximum:
        return None
    return not argument.required or value == argument.identity or is_right(text)


def is_right(text: str) -> bool:
    try:
        compile_source(Source(text))
    except ScheduleError:
        return False
    return True


def number_rows() -> Iterator[Row]:
    for spec in VOCABULARY.specs:
        for argument in spec.arguments:
            if argument.kind != "int":
                continue
            name = bare(argument)
            line = 2 + list(APART.get(spec.name, RUNGS)).index(spec.name)
            for label, value in NUMBERS.items():
                text = written(spec, argument, value)
                legal = TAKEN.get((spec.name, argument.name, label))
                if legal is None:
                    legal = derived(spec, argument, label, text)
                said = None if legal else (name,)
                if value and legal is None and label != "7":
                    said = (f"x.sched:{line}:",)
                yield Row(f"{spec.name} {name}={label}", text, said)


def name_rows() -> Iterator[Row]:
    for place, text in NAME_PLACES.items():
        for label, name in NAMES.items():
            legal = place == "let" and label in LET_NAMES
            yield Row(f"{place} called {label}", text.format(name), None if legal else ())


def halved(count: int) -> str:
    """A sum of ``count`` scalars, bracketed so that it is not deep."""
    if count == 1:
        return "acc"
    return f"({halved(count // 2)} + {halved(count - count // 2)})"


def deep(depth: int) -> str:
    return "relu(" * depth + "acc" + ")" * depth


ROWS = (
    Row("empty", b"", ("the schedule is empty", "gemm C[m, n] = A[m, k] * B[k, n]", "naive")),
    Row("blank lines", b"\n \n\t\n", ("the schedule is empty",)),
    Row("a comment", b"# tile m=8 n=8\n", ("the schedule is empty",)),
    Row("a byte order mark alone", b"\xef\xbb\xbf", ("the schedule is empty",)),
    Row("unknown directive", "flatten A\n", ("unknown directive `flatten`",), (1, 1)),
    Row("misspelt tile", "tille m=8 n=128\n", ("did you mean `tile`?",), (1, 1)),
    Row("misspelt vectorize", GEMM + "vectorise A width=4\n", ("did you mean `vectorize`?",)),
    Row("misspelt double_buffer", "doublebuffer A B\n", ("did you mean `double_buffer`?",)),
    Row("capitals", "TILE m=64 n=64\n", ("did you mean `tile`?",)),
    Row("misspelt cache_shared", "cache_share A\n", ("did you mean `cache_shared`?",)),
    Row("another's word", "num_stages 3\n", ("did you mean `double_buffer`?",)),
    Row("misspelt argument", "tile mm=64 n=64 k=8\n", ("no argument `mm`",)),
    Row("misspelt operand", "tile m=32 n=32 k=8\ncache_shared Aa\n", ("no tensor Aa",)),
    Row("misspelt hop", "vectorize A.globl width=4\n", ("did you mean A.global?",)),
    Row("cache_shared A A", "tile m=32 n=32 k=8\ncache_shared A A\n", ("A twice",), (2, 16)),
    Row("pad A in two lines", "pad A by=4\npad A by=8\n", ("A twice", "line 1, column 5"), (2, 5)),
    Row("vectorize A and A.global", "vectorize A.global A width=4\n", ("A.global twice",)),
    Row("double_buffer A and A.shared", "double_buffer A A.shared\n", ("A.shared twice",)),
    Row("tile twice", "tile m=8 n=32\ntile m=8 n=32\n", ("tile is given twice",), (2, 1)),
    Row("an argument twice", "tile m=8 m=8 n=32\n", ("m is given twice",), (1, 10)),
    Row("fuse_epilogue twice", "fuse_epilogue acc\nfuse_epilogue acc\n", ("is given twice",)),
    Row("cache_shared alone", "cache_shared A[k, m] B\n", ("k is not split", "tile m=8 n=32 k=8")),
    Row("cache_shared and no k", "tile m=32 n=32\ncache_shared A\n", ("tile m=32 n=32 k=8",)),
    Row("warp_tile alone", "warp_tile m=64 n=32\n", ("needs register_block",)),
    Row("register_block alone", "register_block m=8 n=8\n", ("tile m=8 n=32",)),
    Row("vectorize alone", "vectorize A B C width=4\n", ("no copy to widen",)),
    Row("pad alone", "pad A by=4\n", ("A is not in shared memory", "cache_shared A")),
    Row("double_buffer alone", "double_buffer A B\n", ("A is not in shared memory",)),
    Row("fragments ahead alone", "double_buffer A.register\n", ("add register_block m=8 n=8",)),
    Row("register_block not dividing", "tile m=64 n=64 k=8\nregister_block m=7 n=8\n", ("64 % 7",)),
    Row(
        "vectorize not dividing",
        "tile m=64 n=64 k=6\ncache_shared A B\nregister_block m=8 n=8\nvectorize A width=4\n",
        ("6 % 4 = 2", "width=2"),
        (4, 13),
    ),
    Row(
        "warp_tile not dividing",
        "tile m=64 n=64 k=8\nregister_block m=8 n=8\nwarp_tile m=48 n=64\n",
        ("48 threads",),
    ),
    Row(
        "interleave not dividing",
        "tile m=64 n=64 k=8\nregister_block m=8 n=8 interleave=3\n",
        ("8 % 3 = 2",),
    ),
    Row(
        "pad breaking wide rows",
        "tile m=64 n=64 k=8\ncache_shared A[k, m]\nregister_block m=8 n=8\n"
        "vectorize A width=4\npad A by=3\n",
        ("67 % 4 = 3", "by=4"),
    ),
    Row("1025 threads", "tile m=25 n=41\n", ("25 x 41 = 1025 threads", "1024"), (1, 1)),
    Row("2048 threads", "tile m=64 n=32\n", ("2048 threads", "register_block"), (1, 1)),
    Row("33 threads", "tile m=3 n=11\n", ("33 % 32 = 1",), (1, 1)),
    Row("1 thread", "tile m=1 n=1\n", ("1 % 32 = 1",), (1, 1)),
    Row(
        "shared memory over sm_80's",
        "tile m=128 n=128 k=128\ncache_shared A B\nregister_block m=8 n=8\ndouble_buffer A B\n",
        ("262,144 bytes needed, 166,912 allowed",),
    ),
    Row(
        "shared memory over sm_75's",
        "target sm_75\ntile m=128 n=128 k=64\ncache_shared A B\nregister_block m=8 n=8\n"
        "pad A by=1\n",
        ("66,048 bytes needed, 65,536 allowed",),
    ),
    Row(
        "a large naive tile in shared memory",
        "tile m=32 n=32 k=4096\ncache_shared A B\n",
        ("1,048,576 bytes needed",),
    ),
    Row("64 x 64 micro-tile", "tile m=256 n=256 k=8\nregister_block m=64 n=64\n", ("255",)),
    Row(
        "unroll 4096",
        "tile m=64 n=64 k=8\nunroll k=4096\n",
        ("x.sched:2:8:", "unroll k=4096 does not divide"),
    ),
    Row(
        "stages 1000",
        "tile m=64 n=64 k=8\ncache_shared A B\nregister_block m=4 n=4\n"
        "double_buffer A B stages=1000\n",
        ("stages is 1000, out of range", "from 1 to 16"),
    ),
    Row("NUL", "tile m=32\0 n=32\n", ("NUL",), (1, 10)),
    Row("NUL in a comment", "tile m=32 n=32\n# \0\n", ("NUL",), (2, 3)),
    Row("Latin-1", "# gr\xf6\xdfe\ntile m=32 n=32\n".encode("latin-1"), ("UTF-8",), (1, 5)),
    Row("UTF-16", "tile m=32 n=32\n".encode("utf-16"), ("UTF-8",), (1, 1)),
    Row("UTF-16 without a mark", "tile m=32 n=32\n".encode("utf-16-le"), ("NUL",), (1, 2)),
    Row("full-width letters", "\uff54\uff49\uff4c\uff45 m=32 n=32\n", ("tile",), (1, 1)),
    Row("full-width digits", "tile m=\uff13\uff12 n=32\n", ("32",), (1, 8)),
    Row("a full-width equals sign", "tile m\uff1d32 n=32\n", ("`=`",), (1, 7)),
    Row("a zero-width space", "tile m=32\u200b n=32\n", ("U+200B",), (1, 10)),
    Row("a direction mark", "tile m=32 \u202en=32\n", ("U+202E",), (1, 11)),
    Row("an escape sequence", "tile m=32 \x1b[2Jn=32\n", ("U+001B",), (1, 11)),
    Row("a form feed", "tile m=32\fn=32\n", ("U+000C",), (1, 10)),
    Row("a line separator", "tile m=32 n=32\u2028k=8\n", ("U+2028",), (1, 15)),
    Row("a combining mark", "tile m\u0301=32 n=32\n", ("U+0301",), (1, 7)),
    Row("typographic quotes", "kernel \u201cx\u201d\n", ("U+201C",), (1, 8)),
    Row("a dash", "require shared \u2264 48KiB\n", ("U+2264",), (1, 16)),
    Row("a times sign", "gemm C[m, n] = A[m, k] \xd7 B[k, n]\n", ("`*`",), (1, 24)),
    Row("1,000 terms", "fuse_epilogue " + " + ".join(["acc"] * 1000) + "\n", ("1000",)),
    Row("200 terms", "fuse_epilogue " + " + ".join(["acc"] * 200) + "\n", ("deep",)),
    Row("depth 200", f"fuse_epilogue {deep(200)}\n", ("nested", "64")),
    Row("200 minus signs", "fuse_epilogue " + "-" * 200 + "acc\n", ("nested", "64")),
    Row("200 nots", "fuse_epilogue where(" + "!" * 200 + "(acc > 0), 1, 0)\n", ("nested", "64")),
    Row("1,000 names", "fuse_epilogue " + halved(1000) + "\n", ("1999 terms", "1000")),
    Row("two byte order marks", b"\xef\xbb\xbf" * 2 + b"tile m=8 n=32\n", ("second byte order",)),
    Row("C's comment", "// a note\ntile m=8 n=32\n", ("begins with `#`",), (1, 1)),
    Row("C's comment at the end", "tile m=8 n=32 // a note\n", ("begins with `#`",), (1, 15)),
    Row("C's long comment", "tile m=8 n=32 /* a note */\n", ("begins with `#`",), (1, 15)),
    Row("SQL's comment", "target sm_80 -- a note\n", ("begins with `#`",), (1, 14)),
    Row("a comment of an epilogue", "fuse_epilogue acc // a note\n", ("begins with `#`",)),
    Row("a fraction", "tile m=1.5 n=32\n", ("an integer from 1 to 4096",), (1, 8)),
    Row("cluster of nothing", "cluster\n", ("it takes m or n", "or leave the line out"), (1, 1)),
    Row("JSON", '{"tile": {"m": 64}}\n', ("begins with a word",), (1, 1)),
    Row("Python", "import gemmgen\nprint(gemmgen)\n", ("unknown directive `import`",)),
    Row("a shell", "$(rm -rf /)\n", ("begins with a word",), (1, 1)),
    Row("CUDA", "__global__ void f() {}\n", ("unknown directive",), (1, 1)),
    Row("no gemm word", "C[m, n] = A[m, k] * B[k, n]\n", ("did you mean `gemm C[m, n]",), (1, 1)),
    Row("an unsettled set", "tile m={32, 64} n=32\n", ("--set tile.m=32",), (1, 8)),
    Row("an open bracket", "tile m={32, 64\nraster group=8\n", ("`{` is never closed",), (1, 8)),
    Row("a requirement unmet", "tile m=32 n=32\nrequire threads <= 256\n", ("threads = 1,024",)),
    *(Row(f"{word} alone", f"{word}\n", (LATER[word].hint,)) for word in LATER),
    Row("a byte order mark", b"\xef\xbb\xbftile m=8 n=32\n", None),
    Row("CRLF", b"tile m=8 n=32\r\n# end\r\n", None),
    Row("CR", b"tile m=8 n=32\rraster group=2\r", None),
    Row("no line end", b"tile m=8 n=32", None),
    Row("tabs", b"\ttile\tm=8\tn=32\t# a tile\n", None),
    Row("a gemm line", GEMM, None),
    Row("bind alone", "bind x=n\n", None),
    Row("raster alone", "raster group=8\n", None),
    Row("fuse_epilogue alone", "fuse_epilogue relu(acc + bias[n])\n", None),
    Row("every rung", GEMM + "".join(f"{text}\n" for text in RUNGS.values()), None),
    Row("32 threads", "tile m=1 n=32\n", None),
    Row("1024 threads", "tile m=32 n=32\n", None),
    *number_rows(),
    *name_rows(),
)
