"""Each layer holds for right kernels, and its failures name what and where."""

from __future__ import annotations

from dataclasses import replace

import compilers
import pytest

from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source
from gemmgen.cli.verify import command
from gemmgen.ir.expr import Binary, Expr, Var
from gemmgen.ir.nodes import Map
from gemmgen.ir.problem import Tensor, default_epilogue
from gemmgen.ir.text import print_ir
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Step, rewrite
from gemmgen.proof import compiled, cpu, gpu, meaning, round_trip
from gemmgen.proof.default_shapes import c1_shapes, c2_shapes, g2_shapes
from gemmgen.proof.layers import LAYERS, exit_code, verify
from gemmgen.proof.nvcc_object import NvccObject
from gemmgen.proof.outcome import Outcome, Subject, failed, passed, skipped
from gemmgen.proof.shapes import exactly, fit

from .subjects import DOUBLE, LADDER, NAIVE, TILED, subject

EPILOGUES = [
    "relu(acc + bias[n])",
    "gelu_tanh(alpha * acc) * residual[m, n]",
    "silu(acc) + scale * residual[n, m]",
    "where(m > n, acc, 0) - m",
    "clamp(acc * row[m] + beta * C[m, n], -3, 10)",
    "round(acc / 3) + max(C[m, n], 0)",
    "sqrt(abs(acc)) - min(acc, bias[n]) * 2",
    "exp(tanh(acc))",
]
ORDERS = [
    "C[n, m] = A[m, k] * B[n, k]",
    "C[m, n] = A[k, m] * B[n, k]",
    "S[i, j] = Q[d, i] * T[d, j]",
]


def held(outcome: Outcome) -> bool:
    assert outcome.status == "passed", outcome
    return True


@pytest.mark.by_default("naive")
@pytest.mark.parametrize("schedule", [NAIVE, DOUBLE, LADDER], ids=["naive", "double", "ladder"])
def test_all_layers_that_can_run_hold(schedule: str):
    outcomes = {outcome.layer: outcome for outcome in verify(subject(schedule))}
    assert tuple(outcomes) == tuple(LAYERS)
    for outcome in outcomes.values():
        assert outcome.status != "failed" and (outcome.detail or outcome.reason)
    assert held(outcomes["C0"]) and held(outcomes["C1"]) and held(outcomes["C2"])


@pytest.mark.by_default("*relu(acc + bias*")
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_epilogues_are_met_bit_by_bit_or_within_their_librarys_rounding(epilogue: str):
    assert held(cpu.check(subject(f"{TILED}fuse_epilogue {epilogue}\n", (5, 7, 9), (33, 18, 20))))


@pytest.mark.proof
@pytest.mark.parametrize("order", ORDERS)
def test_storage_orders_and_letters(order: str):
    m, n, k = ("i", "j", "d") if "S" in order else ("m", "n", "k")
    a, b = ("Q", "T") if "S" in order else ("A", "B")
    text = f"gemm {order}\ntile {m}=32 {n}=16 {k}=8\ncache_shared {a}[{k}, {m}] {b}[{k}, {n}]\n"
    kernel = subject(f"{text}register_block {m}=4 {n}=4\n")
    assert held(meaning.check(kernel)) and held(cpu.check(kernel))


def test_assumptions_choose_the_shapes():
    kernel = subject("assume K % 8 == 0\nassume N % 4 == 0\nassume lda == K\n" + TILED)
    assert held(meaning.check(kernel)) and held(cpu.check(kernel))
    for _, n, k in c2_shapes(kernel.emitted):
        assert n % 4 == 0 and k % 8 == 0
    assert fit(kernel.emitted, (5, 5, 5)) == (5, 8, 8)
    with pytest.raises(UsageError, match="requires N % 4 == 0, K % 8 == 0"):
        exactly(kernel.emitted, (5, 5, 5))


def test_the_help_of_verify_counts_the_default_shapes():
    emitted = subject(DOUBLE).emitted
    assert len(c1_shapes(emitted)) == 3 and "C1 three" in (command.help or "")
    assert len(c2_shapes(emitted)) == 8 and "C2 eight, K = 0 among them" in (command.help or "")
    assert g2_shapes(emitted)[:8] == c2_shapes(emitted) and len(g2_shapes(emitted)) == 8 + 3


def test_default_shapes_surround_the_tile_and_pass_the_ring_of_stages():
    shapes = c2_shapes(subject(DOUBLE).emitted)
    assert {(1, 1, 1), (15, 17, 23), (17, 15, 25), (16, 16, 16), (3, 5, 0)} <= set(shapes)


def test_empty_matrices_and_large_shapes_asked_for():
    outcome = cpu.check(subject(NAIVE, (0, 5, 3), (5, 0, 0), (4096, 4096, 4096)))
    assert held(outcome) and "1 is left to a GPU" in outcome.detail


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Binary("+", default_epilogue(Tensor("C", ("m", "n"))), Var("acc")), "C[0, 0] is "),
        (Var("acc"), "takes no alpha, beta"),
    ],
)
def test_meaning_names_the_pass_where_it_is_lost(
    value: Expr, said: str, monkeypatch: pytest.MonkeyPatch
):
    def broken(schedule) -> tuple[Step, ...]:
        steps = list(rewrite(schedule))
        kernel = steps[2].program.main
        body = tuple(replace(s, value=value) if isinstance(s, Map) else s for s in kernel.body)
        program = replace(steps[2].program, kernels=(replace(kernel, body=body),))
        steps[2] = replace(steps[2], program=program)
        return tuple(steps)

    kernel = subject(TILED)
    monkeypatch.setattr(meaning, "rewrite", broken)
    outcome = meaning.check(kernel)
    assert outcome.status == "failed"
    assert outcome.detail.startswith(f"after cache_shared: 2x3x5: {said}")


def test_text_that_gives_other_bytes_is_reported_by_line():
    kernel = subject(NAIVE)
    lines = kernel.emitted.text.splitlines(keepends=True)
    other = replace(kernel.emitted, text="".join([*lines[:3], "// other\n", *lines[4:]]))
    outcome = round_trip.check(Subject(other))
    assert outcome.status == "failed" and "line 4 is " in outcome.detail


@pytest.mark.parametrize(
    ("written", "read", "said"),
    [
        ("] f32", "] f64", "Program reads back as another: line "),
        ("origin=", "origen=", "ExpandedProgram does not read back: line "),
        ("lowered_kernel threads=", "lowered_kernel =", "LoweredProgram does not read back: line "),
    ],
)
def test_ir_whose_text_says_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch, written: str, read: str, said: str
):
    monkeypatch.setattr(
        round_trip, "print_ir", lambda node: print_ir(node).replace(written, read, 1)
    )
    outcome = round_trip.check(subject(TILED))
    assert outcome.status == "failed" and said in outcome.detail


def test_require_registers_is_checked_after_compiling(monkeypatch: pytest.MonkeyPatch):
    compilers.needed()
    monkeypatch.setattr(
        compiled.nvcc_object, "compiled", lambda *_: NvccObject(None, "no launcher")
    )
    monkeypatch.setattr(compiled, "ARCHITECTURES", ())
    outcome = compiled.check(subject(NAIVE + "require registers <= 8\n"))
    assert outcome.status == "failed"
    assert "require registers <= 8 does not hold: registers = " in outcome.detail
    assert outcome.figures["sm_80"]["registers"] > 8
    assert compiled.check(subject(NAIVE + "require spills == 0\n")).status == "passed"


def test_only_architectures_that_fit_are_compiled_for():
    large = "tile m=128 n=128 k=64\ncache_shared A B\nregister_block m=8 n=8\n"
    assert compiled.architectures(subject(large).emitted) == ("sm_75", *compiled.ARCHITECTURES[1:])
    larger = subject(large + "double_buffer A B\n").emitted
    assert compiled.architectures(larger) == ("sm_80", "sm_90")
    exact = subject(NAIVE + "target sm_90a\n").emitted
    assert compiled.architectures(exact) == ("sm_90a",)


def test_a_missing_gpu_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu.device, "missing", lambda: "no GPU here")
    assert gpu.check(subject(NAIVE)) == skipped("G2", "no GPU here")


def test_the_gpus_reference_is_in_its_roles():
    import numpy as np

    text = "gemm C[n, m] = A[k, m] * B[n, k]\nfuse_epilogue acc - bias[n] + residual[n, m] * s\n"
    compute = gpu.reference_of(subject(text).emitted)
    assert compute is not None
    rng = np.random.default_rng(1)
    a, b, r = (rng.integers(-4, 5, shape).astype(float) for shape in ((3, 5), (5, 4), (3, 4)))
    bias = np.arange(4.0)[None, :]
    given = {"A": a, "B": b, "C": np.zeros((3, 4)), "bias": bias, "residual": r, "s": 0.5}
    assert np.array_equal(compute(given), a @ b - bias + r * 0.5)
    assert gpu.reference_of(subject(NAIVE).emitted) is None


def test_exit_codes_need_c1_and_c2():
    good = (passed("C1", ""), passed("C2", ""), skipped("G2", "no GPU"))
    assert exit_code(good) == 0
    assert exit_code(good, ("G2",)) == 3
    assert exit_code(good[:1]) == 3
    assert exit_code((*good, failed("C3", "spills")), ("G2",)) == 1


def test_epilogues_that_jump_meet_large_shapes_on_integers_alone():
    text = NAIVE + "fuse_epilogue round(acc / 3)\n"
    kinds = {case.data for case in gpu.cases_of(subject(text, (512, 512, 512)))}
    assert kinds == {"integers"}
    assert len({case.data for case in gpu.cases_of(subject(text, (64, 64, 64)))}) > 2
    smooth = NAIVE + "fuse_epilogue relu(acc)\n"
    assert len({case.data for case in gpu.cases_of(subject(smooth, (512, 512, 512)))}) > 2


def test_results_beyond_f16_are_infinite():
    text = "dtype A=f16 B=f16 C=f16\nfuse_epilogue acc * m / 0.1\n"
    step = rewrite(parse_schedule(Source(text)))[-1]
    assert meaning.difference(step, ((64, 4, 96),)) is None
