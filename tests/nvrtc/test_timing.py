import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import device
from gemmgen.gpu.timing import compare, summarize


def test_median_and_quartiles() -> None:
    found = summarize([5.0, 1.0, 2.0, 3.0, 4.0])
    assert (found.lower, found.median, found.upper) == (2.0, 3.0, 4.0)
    assert found.spread == pytest.approx(2 / 3)


def test_a_difference_under_one_percent_is_a_tie() -> None:
    one, other = summarize([1.0]), summarize([1.009])
    assert compare(one, other) == "tie"
    assert compare(one, summarize([1.02])) == "faster"
    assert compare(summarize([1.02]), one) == "slower"


@pytest.mark.parametrize(
    ("target", "capability", "arch"),
    [("sm_80", (9, 0), "sm_90"), ("sm_90a", (9, 0), "sm_90a"), ("sm_120", (12, 0), "sm_120")],
)
def test_a_kernel_is_compiled_for_the_gpu_it_runs_on(
    target: str, capability: tuple[int, int], arch: str
) -> None:
    assert device.arch_for(target, *capability) == arch


@pytest.mark.parametrize(("target", "capability"), [("sm_90", (8, 0)), ("sm_90a", (10, 0))])
def test_refuses_a_gpu_that_cannot_run_the_target(target: str, capability: tuple[int, int]) -> None:
    with pytest.raises(CannotCheck, match="the kernel needs a GPU of sm_90"):
        device.arch_for(target, *capability)


def test_what_is_missing_is_said_in_one_sentence() -> None:
    why = device.missing()
    assert why is None or ("\n" not in why and "cudaError" not in why)
