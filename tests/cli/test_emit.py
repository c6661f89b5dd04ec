"""``gemmgen emit`` as a user runs it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import compilers
import pytest

from .running import EXAMPLES, fresh, gemmgen

SPACE = "tile m={16, 32} n=32 k=8\n"


def test_prints_the_kernel_on_standard_output():
    result = gemmgen("emit", EXAMPLES / "naive.sched")
    assert result.exit_code == 0 and result.stderr == ""
    assert '\nextern "C" __global__' in result.stdout and result.stdout.endswith("\n")


def test_reads_standard_input_and_takes_the_file_as_an_option_too():
    path = EXAMPLES / "vectorized.sched"
    text = gemmgen("emit", path).stdout
    assert gemmgen("emit", "-", input=path.read_text()).stdout == text
    assert gemmgen("emit", "--schedule", path).stdout == text


def test_line_ends_and_a_byte_order_mark_change_no_byte():
    data = (EXAMPLES / "vectorized.sched").read_bytes()
    dressed = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
    assert gemmgen("emit", "-", input=dressed).stdout == gemmgen("emit", "-", input=data).stdout


@pytest.mark.proof
def test_hash_seeds_change_no_byte():
    import os

    path = EXAMPLES / "vectorized.sched"
    texts = {
        hashlib.sha256(
            fresh("emit", path, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        ).hexdigest()
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_writes_a_file_whole_and_leaves_no_other(tmp_path: Path):
    out = tmp_path / "naive.cu"
    result = gemmgen("emit", EXAMPLES / "naive.sched", "-o", out)
    assert result.exit_code == 0 and result.stdout == ""
    assert out.read_text() == gemmgen("emit", EXAMPLES / "naive.sched").stdout
    assert [p.name for p in tmp_path.iterdir()] == ["naive.cu"]


def test_a_mistake_leaves_the_old_output_as_it_was(tmp_path: Path):
    out = tmp_path / "k.cu"
    out.write_text("old")
    assert gemmgen("emit", "-", "-o", out, input="tile m=7 n=").exit_code == 2
    assert out.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_arch_is_refused_where_a_directive_asks_for_a_later_one(tmp_path: Path):
    path, written = EXAMPLES / "async_copy.sched", tmp_path / "kernel.cu"
    result = gemmgen("emit", path, "--arch", "sm_75", "-o", written)
    assert result.exit_code == 2 and not result.stdout and not written.exists()
    line = path.read_text().splitlines().index("async_copy      A B via=cp_async") + 1
    assert f"{path}:{line}:1: error: sm_75 has no cp.async" in result.stderr
    assert "hint: target sm_80 or later" in result.stderr
    for arch in ("sm_80", "sm_120"):
        assert gemmgen("emit", path, "--arch", arch).exit_code == 0


def test_arch_replaces_the_target():
    text = gemmgen("emit", EXAMPLES / "naive.sched", "--arch", "sm_90").stdout
    assert "//     target          sm_90\n" in text


def test_a_set_is_settled_by_set():
    assert "tile.m=16" in gemmgen("emit", "-", input=SPACE).stderr
    text = gemmgen("emit", "-", "--set", "tile.m=16", input=SPACE).stdout
    assert "tile            m=16 n=32 k=8" in text


def test_check_compares_and_writes_nothing(tmp_path: Path):
    golden = tmp_path / "golden.cu"
    gemmgen("emit", EXAMPLES / "naive.sched", "-o", golden)
    same = gemmgen("emit", EXAMPLES / "naive.sched", "--check", golden)
    assert (same.exit_code, same.output) == (0, "")
    before = golden.read_bytes()
    other = gemmgen("emit", EXAMPLES / "tiled.sched", "--check", golden)
    assert other.exit_code == 1 and golden.read_bytes() == before
    assert other.stdout.startswith(f"--- {golden}\n+++ ")
    assert "+//     tile            m=32 n=32 k=32\n" in other.stdout


def test_check_sees_line_ends(tmp_path: Path):
    golden = tmp_path / "golden.cu"
    golden.write_bytes(gemmgen("emit", EXAMPLES / "naive.sched").stdout_bytes[:-1])
    assert gemmgen("emit", EXAMPLES / "naive.sched", "--check", golden).exit_code == 1


def test_shape_states_its_divisors_and_drops_guards():
    plain = gemmgen("emit", EXAMPLES / "register_blocked.sched").stdout
    fixed = gemmgen("emit", EXAMPLES / "register_blocked.sched", "--shape", "1024x512x256").stdout
    assert "//     assume          M % 1024 == 0\n" in fixed
    assert fixed.count("if (") < plain.count("if (")


def test_shape_is_held_against_the_schedules_own_assumptions():
    text = "assume M % 16 == 0\nassume N == K\n"
    assert "1000 % 16 = 8" in gemmgen("emit", "-", "--shape", "1000", input=text).stderr
    assert "N == K" in gemmgen("emit", "-", "--shape", "16x8x4", input=text).stderr
    assert gemmgen("emit", "-", "--shape", "32x8x8", input=text).exit_code == 0


def test_ptx_and_cubin_are_compiled_for_the_target(tmp_path: Path):
    compilers.needed()
    ptx = gemmgen("emit", EXAMPLES / "naive.sched", "--format", "ptx", "--arch", "sm_90").stdout
    assert ".target sm_90" in ptx and ptx.endswith("\n")
    cubin = tmp_path / "k.cubin"
    gemmgen("emit", EXAMPLES / "naive.sched", "--format", "cubin", "-o", cubin)
    assert cubin.read_bytes()[:4] == b"\x7fELF"
