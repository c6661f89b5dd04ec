"""Derivatives of epilogues against finite differences, and at kinks against PyTorch's rules."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.ir.expr import FUNCTIONS, Call, Expr, Float, Var
from gemmgen.ir.exprtext import format_expression
from gemmgen.language import parse_schedule
from gemmgen.numerics.epilogue_values import evaluate, in_numpy
from gemmgen.torch.derivative import NoDerivative, adjoints

STEP = 1e-6
SMOOTH = (
    "acc + bias[n]",
    "2 * acc - bias[n] * acc",
    "acc / bias[n] - bias[n] / (3 + acc)",
    "-(acc - bias[n]) * -acc",
    "gelu(acc * bias[n])",
    "gelu_tanh(acc - bias[n])",
    "silu(acc) * sigmoid(bias[n])",
    "tanh(acc * 2) + exp(-acc) * bias[n] + erf(acc / 2)",
    "sqrt(acc * acc + 1) * abs(bias[n])",
    "relu(acc) + relu(-bias[n]) * acc",
    "min(acc, bias[n]) * max(acc, 2 * bias[n])",
    "clamp(acc, -0.5, bias[n]) + clamp(bias[n], acc, 2 * acc)",
    "where(acc > bias[n] and m < 3, acc * acc, sqrt(abs(bias[n])))",
    "where(not (acc > 0), alpha * acc, beta * acc) + round(acc)",
)
POINTS = np.random.default_rng(5).uniform(-2, 2, (2, 400))


def parsed(text: str) -> Expr:
    schedule = parse_schedule(Source(f"fuse_epilogue {text} + 0 * acc\n"))
    assert schedule.epilogue is not None
    return schedule.epilogue.expression


def value(expr: Expr, acc: np.ndarray, bias: np.ndarray) -> np.ndarray:
    names = {"acc": acc, "alpha": np.float64(1.25), "beta": np.float64(-0.5)}
    names |= {"m": np.float64(2), "n": np.float64(1), "seed": np.float64(0.75)}
    found = evaluate(expr, names, {"bias": bias}, in_numpy(np.float64))
    return np.broadcast_to(np.asarray(found), acc.shape)


@pytest.mark.parametrize("text", SMOOTH)
def test_is_the_limit_of_differences(text: str) -> None:
    acc, bias = POINTS
    expr = parsed(text)
    found = adjoints(expr, Var("seed"))
    with np.errstate(all="ignore"):
        by_acc = value(expr, acc + STEP, bias) - value(expr, acc - STEP, bias)
        by_bias = value(expr, acc, bias + STEP) - value(expr, acc, bias - STEP)
        got = [value(found.get(name, Float(0.0)), acc, bias) for name in ("acc", "bias")]
    for difference, adjoint in zip((by_acc, by_bias), got, strict=True):
        wanted = 0.75 * difference / (2 * STEP)
        # Beside a kink or a jump a difference says nothing: few points lie there.
        right = np.isclose(adjoint, wanted, rtol=1e-5, atol=1e-5)
        assert right.mean() > 0.99, text


def test_every_function_has_a_rule_and_its_derivative_can_be_written() -> None:
    for function, count in FUNCTIONS.items():
        arguments = ["acc > 0", "acc", "bias[n]"] if function == "where" else ["acc", "-1", "2"]
        expr = parsed(f"{function}({', '.join(arguments[:count])})")
        slope = adjoints(expr, Var("alpha")).get("acc", Float(0.0))
        assert parsed(format_expression(slope)) is not None


KINKS = {
    "relu(acc)": (0.0, 0.0),
    "abs(acc)": (0.0, 0.0),
    "min(acc, 1)": (1.0, 0.5),
    "max(1, acc)": (1.0, 0.5),
    "clamp(acc, 0, 1)": (1.0, 1.0),
    "clamp(acc, 0, acc)": (0.0, 1.0),
    "round(acc)": (0.5, 0.0),
}


@pytest.mark.parametrize("text", KINKS)
def test_kinks_are_pytorchs(text: str) -> None:
    at, wanted = KINKS[text]
    found = adjoints(parsed(text), Float(1.0))["acc"]
    assert value(found, np.array([at]), np.array([0.0])) == wanted


def test_an_infinite_gradient_stays_out_of_the_side_not_taken() -> None:
    found = adjoints(parsed("relu(acc)"), Var("alpha"))["acc"]
    got = evaluate(
        found, {"acc": np.array([-1.0]), "alpha": np.float64(np.inf)}, {}, in_numpy(np.float64)
    )
    assert np.array_equal(got, [0.0])


def test_a_function_without_a_rule_is_named() -> None:
    with pytest.raises(NoDerivative, match="gamma has no derivative rule"):
        adjoints(Call("gamma", (Var("acc"),)), Float(1.0))
