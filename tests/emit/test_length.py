"""Kernels of two roles are short enough to be read, and each role is found at once."""

from __future__ import annotations

import pytest
from stated import stated

from gemmgen.emit.kernel_view import BEGIN, END
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

MOST = 300
WHOLE = 550
"""Lines of the longest text of bf16: head, functions, kernel and launcher."""
LONGER: dict[str, int] = stated("lines")
HOPPER = [name for name in examples.names() if name.startswith("hopper/")]
PRODUCER, CONSUMERS = "// the producer: ", "// the consumers: "


def lines_of(name: str) -> list[str]:
    """From the namespace's first line to the end of the kernel: neither the head of the file nor
    the launcher."""
    lines = compile_source(read_source(str(examples.path_of(name)))).text.splitlines()
    return lines[lines.index("namespace gemm_detail {") : lines.index(END)]


@pytest.mark.by_default("hopper/persistent", "hopper/tma_store")
@pytest.mark.parametrize("name", HOPPER)
def test_a_kernel_and_its_functions_are_300_lines_at_most(name: str) -> None:
    """Those that are longer do not grow."""
    length = len(lines_of(name))
    assert length <= LONGER.get(name, MOST)
    assert (length > MOST) == (name in LONGER)


def test_a_ping_pong_text_is_550_lines_at_most() -> None:
    text = compile_source(read_source(str(examples.path_of("best/bf16_8192")))).text
    assert len(text.splitlines()) <= WHOLE


@pytest.mark.by_default("hopper/persistent")
@pytest.mark.parametrize("name", HOPPER)
def test_each_role_begins_with_its_name(name: str) -> None:
    """Right below the one condition that parts them, the producer first."""
    lines = lines_of(name)
    kernel = [line.strip() for line in lines[lines.index(BEGIN) :]]
    found = [at for at, line in enumerate(kernel) if line.startswith((PRODUCER, CONSUMERS))]
    if "warp_specialize" not in examples.path_of(name).read_text(encoding="utf-8"):
        assert not found
        return
    producer, consumers = found
    assert kernel[producer].startswith(PRODUCER) and kernel[consumers].startswith(CONSUMERS)
    assert kernel[producer - 1] == "if (threadIdx.x >= CONSUMERS) {"
    assert kernel[consumers - 1] == "} else {"


@pytest.mark.by_default("hopper/persistent", "hopper/warp_specialized")
@pytest.mark.parametrize("name", HOPPER)
def test_the_place_of_a_tile_is_computed_once(name: str) -> None:
    """By a function that both roles call, or before them where a block has one tile."""
    schedule = examples.path_of(name).read_text(encoding="utf-8")
    text = "\n".join(lines_of(name))
    called = "warp_specialize" in schedule and "\npersistent" in schedule
    assert text.count("void tile_at(") == called
    assert text.count(" tile_at(") - called == 2 * called
    assert text.count("tile_m = ") == 1
