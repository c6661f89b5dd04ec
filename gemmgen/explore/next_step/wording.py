"""The next step in words, and as plain values."""

from __future__ import annotations

from gemmgen.analyze.explain import Explanation
from gemmgen.analyze.figures import Json
from gemmgen.analyze.section import Section
from gemmgen.explore.next_step.trying import GAIN, NextStep

NOTABLE = 1.05
"""From here on a bound is said to fall."""


def section(e: Explanation, step: NextStep | None) -> Section:
    """The last lines of a report."""
    return Section("next step", (), (("", sentence(e, step)),))


def sentence(e: Explanation, step: NextStep | None) -> str:
    """``limited by issue slots: `register_block m=8 n=16` would ...: at most 61.2 TFLOP/s``."""
    if step is None:
        attainable = f"{e.attainable / 1e12:.1f} TFLOP/s at most"
        return (
            f"limited by {e.roofline.binding.name}, {attainable}: as good as the models know; no "
            f"statement that was tried is expected to save {GAIN:.0%} of the time"
        )
    tried = ", ".join(f"`{statement}`" for statement in step.statements)
    if step.rewrite:
        return (
            f"limited by {step.binding}: this GPU has wgmma and TMA: `gemmgen suggest` writes a "
            f"schedule with {tried}; the model expects {step.expected / 1e12:.1f} TFLOP/s in place "
            f"of {step.now / 1e12:.1f}"
        )
    if step.less is None:
        does = "would do without it"
    elif step.less > NOTABLE:
        does = f"would lower the time for it {step.less:.1f}x"
    else:
        does = "would not lower that, but what is waited for and the SMs that have no block"
    return (
        f"limited by {step.binding}: {tried} {does}: at most {step.attainable / 1e12:.1f} TFLOP/s; "
        f"the models expect {step.expected / 1e12:.1f} in place of {step.now / 1e12:.1f}"
    )


def as_json(step: NextStep | None) -> Json:
    """None if there is none."""
    if step is None:
        return None
    return {
        "statements": list(step.statements),
        "binding": step.binding,
        "binding_falls_by": step.less,
        "expected_flops_now": step.now,
        "expected_flops": step.expected,
        "rewrite": step.rewrite,
        "attainable_flops": step.attainable,
    }
