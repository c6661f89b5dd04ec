"""One tensor-core instruction as a kernel: each warp (warpgroup) multiplies one tile of a batch.

A tile is ``c += a b`` with a of m x K, b of n x K (both K-major), c of m x n, row by row, as bits.
K is a multiple of the instruction's k: longer ones are chains of instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

BYTES = {"f64": 8, "f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1}


@dataclass(frozen=True)
class Instruction:
    """``via`` mma, wmma or wgmma, of ``m`` x ``n`` x ``k``, from types ``a`` and ``b`` to
    accumulators of type ``acc``."""

    via: str
    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str

    @property
    def shape(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def name(self) -> str:
        return f"{self.via}.{self.shape}.{self.acc}.{self.a}.{self.b}"

    @property
    def threads(self) -> int:
        return 128 if self.via == "wgmma" else 32


def _fp8(via: str, m: int, n: int, k: int, accs: tuple[str, ...]) -> list[Instruction]:
    pairs = [(a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
    return [Instruction(via, m, n, k, a, b, acc) for acc in accs for a, b in pairs]


INSTRUCTIONS = (
    Instruction("mma", 16, 8, 16, "f16", "f16", "f32"),
    Instruction("mma", 16, 8, 16, "f16", "f16", "f16"),
    Instruction("mma", 16, 8, 16, "bf16", "bf16", "f32"),
    Instruction("mma", 16, 8, 8, "f16", "f16", "f32"),
    Instruction("mma", 16, 8, 8, "f16", "f16", "f16"),
    Instruction("mma", 16, 8, 8, "bf16", "bf16", "f32"),
    Instruction("mma", 16, 8, 8, "tf32", "tf32", "f32"),
    Instruction("mma", 16, 8, 4, "tf32", "tf32", "f32"),
    *_fp8("mma", 16, 8, 32, ("f32", "f16")),
    *_fp8("mma", 16, 8, 16, ("f32",)),
    Instruction("mma", 8, 8, 4, "f64", "f64", "f64"),
    Instruction("mma", 16, 8, 4, "f64", "f64", "f64"),
    Instruction("mma", 16, 8, 8, "f64", "f64", "f64"),
    Instruction("mma", 16, 8, 16, "f64", "f64", "f64"),
    Instruction("wmma", 16, 16, 16, "f16", "f16", "f32"),
    Instruction("wmma", 16, 16, 16, "f16", "f16", "f16"),
    Instruction("wmma", 16, 16, 16, "bf16", "bf16", "f32"),
    Instruction("wmma", 16, 16, 8, "tf32", "tf32", "f32"),
    Instruction("wgmma", 64, 8, 16, "f16", "f16", "f32"),
    Instruction("wgmma", 64, 8, 16, "f16", "f16", "f16"),
    Instruction("wgmma", 64, 8, 16, "bf16", "bf16", "f32"),
    Instruction("wgmma", 64, 64, 16, "bf16", "bf16", "f32"),
    Instruction("wgmma", 64, 8, 8, "tf32", "tf32", "f32"),
    *_fp8("wgmma", 64, 8, 32, ("f32", "f16")),
    Instruction("wgmma", 64, 64, 32, "e4m3", "e4m3", "f32"),
)

PARAMETERS = (
    "const unsigned char *A, const unsigned char *B, const unsigned char *C, "
    "unsigned char *D, int K"
)


_LANE = "  const unsigned thread = threadIdx.x, lane = thread % 32;\n"


def text(what: Instruction) -> str:
    """The CUDA text of ``tile``: one block a tile."""
    if what.via == "wgmma":
        body = _wgmma(what)
    elif what.via == "wmma":
        body = _wmma(what)
    else:
        body = _doubles(what) if what.a == "f64" else _mma(what)
    return f'extern "C" __global__ void tile({PARAMETERS}) {{\n{_tile(what)}{body}}}\n'


def _tile(what: Instruction) -> str:
    size_a, size_acc = BYTES[what.a], BYTES[what.acc]
    return (
        "  const unsigned t = blockIdx.x;\n"
        f"  const int line = K * {size_a};  // bytes of a row of A and of a column of B\n"
        f"  A += (size_t)t * {what.m} * line; B += (size_t)t * {what.n} * line;\n"
        f"  C += (size_t)t * {what.m * what.n * size_acc}; "
        f"D += (size_t)t * {what.m * what.n * size_acc};\n"
    )


def _list(constraint: str, names: list[str]) -> str:
    return ", ".join(f'"{constraint}"({name})' for name in names)


def _holes(first: int, count: int) -> str:
    return ", ".join(f"%{i}" for i in range(first, first + count))


def _accumulators(rows: str, columns: int, acc: str, way: str) -> str:
    """Loads ("in") or stores ("out") of a lane's accumulators: pairs of adjacent columns of a row
    and, for 16 rows, of the row 8 below."""
    word = {"f32": "float", "f64": "double", "f16": "unsigned"}[acc]
    each = 1 if acc == "f16" else 2  # registers of a pair
    lines: list[str] = []
    for column in range(columns // 8):
        for below in range(2 if rows != "8" else 1):
            for i in range(each):
                register = (column * 2 + below) * each + i
                element = f"(row + {8 * below}) * {columns} + {8 * column} + lane % 4 * 2" + (
                    f" + {i}" if each == 2 else ""
                )
                place = f"*({word} *)&{'D' if way == 'out' else 'C'}[({element}) * {BYTES[acc]}]"
                if way == "in":
                    place = place.replace(f"({word} *)", f"(const {word} *)")
                    lines.append(f"  c[{register}] = {place};\n")
                else:
                    lines.append(f"  {place} = c[{register}];\n")
    return "".join(lines)


def _mma(what: Instruction) -> str:
    """Registers of 4 bytes along k, as the PTX ISA's figures for mma.m16n8k* distribute them."""
    size = BYTES[what.a]
    halves = max(1, what.k * size // 16)
    a, b = 2 * halves, halves
    count = 2 if what.acc == "f16" else 4
    kind = "unsigned" if what.acc == "f16" else "float"
    letter = "r" if what.acc == "f16" else "f"
    loads = "".join(
        f"    a[{i}] = *(const unsigned *)&A[(row + {i % 2 * 8}) * line + k + lane % 4 * 4 "
        f"+ {i // 2 * 16}];\n"
        for i in range(a)
    ) + "".join(
        f"    b[{i}] = *(const unsigned *)&B[row * line + k + lane % 4 * 4 + {i * 16}];\n"
        for i in range(b)
    )
    c = [f"c[{i}]" for i in range(count)]
    types = f"{what.acc}.{what.a}.{what.b}.{what.acc}"
    return (
        f"{_LANE}  const unsigned row = lane / 4; {kind} c[{count}]; unsigned a[{a}], b[{b}];\n"
        + _accumulators("16", 8, what.acc, "in")
        + f"  for (int k = 0; k < line; k += {what.k * size}) {{\n{loads}"
        f'    asm volatile("mma.sync.aligned.{what.shape}.row.col.{types} '
        f"{{{_holes(0, count)}}}, {{{_holes(count, a)}}}, {{{_holes(count + a, b)}}}, "
        f'{{{_holes(0, count)}}};"\n      : {_list("+" + letter, c)}\n      : '
        f'{_list("r", [f"a[{i}]" for i in range(a)])}, '
        f'{_list("r", [f"b[{i}]" for i in range(b)])});\n  }}\n'
        + _accumulators("16", 8, what.acc, "out")
    )


def _doubles(what: Instruction) -> str:
    rows = what.m // 8
    steps = what.k // 4
    a, b, count = rows * steps, steps, 2 * rows
    loads = "".join(
        f"    a[{i}] = *(const double *)&A[(row + {i % rows * 8}) * line + "
        f"(k + lane % 4 + {i // rows * 4}) * 8];\n"
        for i in range(a)
    ) + "".join(
        f"    b[{i}] = *(const double *)&B[row * line + (k + lane % 4 + {i * 4}) * 8];\n"
        for i in range(b)
    )
    c = [f"c[{i}]" for i in range(count)]
    return (
        f"{_LANE}  const unsigned row = lane / 4; double c[{count}], a[{a}], b[{b}];\n"
        + _accumulators(str(what.m), 8, "f64", "in")
        + f"  for (int k = 0; k < K; k += {what.k}) {{\n{loads}"
        f'    asm volatile("mma.sync.aligned.{what.shape}.row.col.f64.f64.f64.f64 '
        f"{{{_holes(0, count)}}}, {{{_holes(count, a)}}}, {{{_holes(count + a, b)}}}, "
        f'{{{_holes(0, count)}}};"\n      : {_list("+d", c)}\n      : '
        f'{_list("d", [f"a[{i}]" for i in range(a)])}, '
        f'{_list("d", [f"b[{i}]" for i in range(b)])});\n  }}\n'
        + _accumulators(str(what.m), 8, "f64", "out")
    )


def _wmma(what: Instruction) -> str:
    """Fragments are loaded and stored by wmma itself: which lane holds what is unspecified."""
    a = 8 if what.a == "f16" else 4
    count = 4 if what.acc == "f16" else 8
    kind, letter = ("unsigned", "r") if what.acc == "f16" else ("float", "f")
    c = [f"c[{i}]" for i in range(count)]
    words_a, words_b = ([f"{x}[{i}]" for i in range(a)] for x in "ab")
    if what.a == "f16":
        types = f"{what.acc}.{what.acc}"
    else:
        types = f"{what.acc}.{what.a}.{what.b}.{what.acc}"

    def load(matrix: str, layout: str, names: list[str], source: str) -> str:
        return (
            f'    asm volatile("wmma.load.{matrix}.sync.aligned.{layout}.{what.shape}.{what.a} '
            f'{{{_holes(0, a)}}}, [%{a}], %{a + 1};" : {_list("=r", names)} : "l"({source}), '
            '"r"(K) : "memory");\n'
        )

    return (
        f"  {kind} c[{count}]; unsigned a[{a}], b[{a}];\n"
        f'  asm volatile("wmma.load.c.sync.aligned.row.{what.shape}.{what.acc} '
        f'{{{_holes(0, count)}}}, [%{count}], 16;"\n'
        f'    : {_list("=" + letter, c)} : "l"(C) : "memory");\n'
        f"  for (int k = 0; k < line; k += {what.k * BYTES[what.a]}) {{\n"
        + load("a", "row", words_a, "A + k")
        + load("b", "col", words_b, "B + k")
        + f'    asm volatile("wmma.mma.sync.aligned.row.col.{what.shape}.{types} '
        f"{{{_holes(0, count)}}}, {{{_holes(count, a)}}}, {{{_holes(count + a, a)}}}, "
        f'{{{_holes(0, count)}}};" : {_list("+" + letter, c)} : '
        f'{_list("r", words_a)}, {_list("r", words_b)});\n  }}\n'
        f'  asm volatile("wmma.store.d.sync.aligned.row.{what.shape}.{what.acc} '
        f'[%0], {{{_holes(1, count)}}}, 16;" :: "l"(D), {_list(letter, c)} : "memory");\n'
    )


def _wgmma(what: Instruction) -> str:
    """Operands lie K-major and unswizzled in shared memory: core matrices of 8 rows of 16 bytes,
    two for the 32 bytes of an instruction's k, then the next 8 rows."""
    count = what.n // 2 // (2 if what.acc == "f16" else 1)
    kind, letter = ("unsigned", "r") if what.acc == "f16" else ("float", "f")
    c = [f"c[{i}]" for i in range(count)]
    types = f"{what.acc}.{what.a}.{what.b}"
    factors = ", 1, 1, 0, 0" if BYTES[what.a] == 2 else ", 1, 1"
    shared = f"  __shared__ __align__(128) unsigned char a[{64 * 32}], b[{what.n * 32}];\n"
    copy = "".join(
        f"    for (int i = thread; i < {rows} * 32; i += 128)\n"
        f"      {to}[i / 256 * 256 + i % 32 / 16 * 128 + i % 256 / 32 * 16 + i % 16] = "
        f"{source}[i / 32 * line + k + i % 32];\n"
        for to, source, rows in (("a", "A", 64), ("b", "B", what.n))
    )
    matrix = (
        "  const auto matrix = [](const void *p) { return "
        "((unsigned long long)__cvta_generic_to_shared(p) & 0x3ffff) >> 4 | 8ULL << 16 | "
        "16ULL << 32; };  // 128 bytes between core matrices along k, 256 between groups of rows\n"
    )
    return (
        shared
        + _LANE
        + matrix
        + f"  const unsigned row = thread / 32 * 16 + lane / 4; {kind} c[{count}];\n"
        + _accumulators("64", what.n, what.acc, "in")
        + f"  for (int k = 0; k < line; k += 32) {{\n    __syncthreads();\n{copy}"
        '    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n    __syncthreads();\n'
        '    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");\n'
        f'    asm volatile("{{\\n.reg .pred more;\\nsetp.ne.b32 more, %{count + 2}, 0;\\n"\n'
        f'      "wgmma.mma_async.sync.aligned.{what.shape}.{types} '
        f'{{{_holes(0, count)}}}, %{count}, %{count + 1}, more{factors};\\n}}"\n'
        f'      : {_list("+" + letter, c)} : "l"(matrix(a)), "l"(matrix(b)), "r"(1) : "memory");\n'
        '    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");\n'
        '    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");\n'
        f'    asm volatile("" : {_list("+" + letter, c)} :: "memory");\n  }}\n'
        + _accumulators("64", what.n, what.acc, "out")
    )
