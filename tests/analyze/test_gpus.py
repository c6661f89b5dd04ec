"""The known GPUs: the names that drivers and users give them, and files with their figures."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import gemmgen
from gemmgen.base.errors import FileError, UsageError
from gemmgen.gpu.gpu_file import KEYS, MOST_BYTES
from gemmgen.gpu.gpu_names import Reported, gpu_named, gpu_of, same_gpu
from gemmgen.gpu.gpus import GEFORCE, GPUS, SMS, Gpu
from gemmgen.ir.target import TARGETS

GOOD = """# an H100 with more memory
name = "H100 96GB"
arch = "sm_90"
sms = 132
clock = 1980
memory = 3350
cache = 50
power = 700
"""


@pytest.mark.parametrize(
    ("name", "capability", "row"),
    [
        ("NVIDIA H100 80GB HBM3", (9, 0), "H100"),
        ("NVIDIA H100 PCIe", (9, 0), "H100-PCIe"),
        ("NVIDIA H200", (9, 0), "H200"),
        ("NVIDIA B200", (10, 0), "B200"),
        ("NVIDIA L4", (8, 9), "L4"),
        ("NVIDIA L40S", (8, 9), "L40S"),
        ("NVIDIA A10", (8, 6), "A10"),
        ("NVIDIA A100-SXM4-40GB", (8, 0), "A100"),
        ("NVIDIA A100-PCIE-40GB", (8, 0), "A100"),
        ("A100-SXM4-40GB", (8, 0), "A100"),
        ("NVIDIA A100-SXM4-80GB", (8, 0), "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", (8, 0), "A100-80GB"),
        ("NVIDIA GeForce RTX 4070", (8, 9), "RTX4070"),
        ("NVIDIA GeForce RTX 4080", (8, 9), "RTX4080"),
        ("NVIDIA GeForce RTX 4090", (8, 9), "RTX4090"),
        ("NVIDIA GeForce RTX 4060 Ti", (8, 9), "RTX4060Ti"),
        ("NVIDIA GeForce RTX 5070", (12, 0), "RTX5070"),
        ("NVIDIA GeForce RTX 5080", (12, 0), "RTX5080"),
        ("NVIDIA GeForce RTX 5090", (12, 0), "RTX5090"),
        ("NVIDIA GeForce RTX 3080", (8, 6), "RTX3080"),
        ("GeForce RTX 3090", (8, 6), "RTX3090"),
        ("Tesla T4", (7, 5), "T4"),
    ],
)
def test_a_drivers_name_is_that_of_its_row(
    name: str, capability: tuple[int, int], row: str
) -> None:
    sms = GPUS[row].sms
    assert gpu_of(name, capability) is GPUS[row] is gpu_of(name, capability, Reported(sms))
    assert gpu_named(name) is GPUS[row]
    assert same_gpu(name, row) and same_gpu(row.lower(), name)
    assert [other for other in GPUS if same_gpu(name, other)] == [row]


@pytest.mark.parametrize(
    ("name", "capability", "sms", "mhz", "row"),
    [
        ("NVIDIA H100 NVL", (9, 0), 132, 1785, "H100"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", (9, 0), 16, 1980, "H100"),
        ("NVIDIA H20", (9, 0), 78, 1980, "H200"),
        ("NVIDIA H200 NVL", (9, 0), 132, 1785, "H200"),
        ("NVIDIA GH200 480GB", (9, 0), 132, 1980, "H200"),
        ("NVIDIA GB200", (10, 0), 152, 2062, "B200"),
        ("NVIDIA B300 SXM6 AC", (10, 3), 148, 1920, "B200"),
        ("NVIDIA L40", (8, 9), 142, 2490, "L40S"),
        ("NVIDIA L20", (8, 9), 92, 2520, None),
        ("NVIDIA A10G", (8, 6), 80, 1710, "A10"),
        ("NVIDIA A30", (8, 0), 56, 1440, "A100"),
        ("NVIDIA A40", (8, 6), 84, 1740, "A10"),
        ("NVIDIA RTX A6000", (8, 6), 84, 1800, None),
        ("NVIDIA RTX 6000 Ada Generation", (8, 9), 142, 2505, None),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0), 188, 2430, None),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", (8, 9), 66, 2610, "RTX4070"),
        ("NVIDIA GeForce RTX 4090 D", (8, 9), 114, 2520, "RTX4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", (8, 9), 76, 2040, "RTX4090"),
        ("NVIDIA GeForce RTX 3080", (8, 6), 70, 1710, "RTX3080"),
        ("NVIDIA GeForce RTX 3060", (8, 6), 28, 1777, None),
        ("NVIDIA GeForce RTX 2080 Ti", (7, 5), 68, 1545, "T4"),
        ("NVIDIA GB10", (12, 1), 48, 2418, None),
        ("Orin", (8, 7), 16, 1300, None),
        ("NVIDIA Something", (13, 0), 100, 2000, None),
        ("Tesla V100-SXM2-16GB", (7, 0), 80, 1530, "T4"),
    ],
)
def test_another_gpu_is_the_closest_row_scaled(
    name: str, capability: tuple[int, int], sms: int, mhz: int, row: str | None
) -> None:
    found = gpu_of(name, capability, Reported(sms, mhz * 1e6))
    assert (found.name, found.sms, found.clock) == (name, sms, mhz * 1e6)
    assert found.arch == "sm_{}{}".format(*capability) and found.target in TARGETS
    assert found.flops == pytest.approx(2 * sms * found.lanes * mhz * 1e6)
    if row is not None:
        base = GPUS[row]
        assert found.memory == pytest.approx(base.memory * sms / base.sms)
        assert found.power == pytest.approx(base.power * sms / base.sms)
    assert same_gpu(name, name) and not any(same_gpu(name, x) for x in GPUS if x != row)
    known = gpu_of(name, capability, Reported(sms, mhz * 1e6, 9e11, 2**25))
    assert (known.memory, known.cache) == (9e11, 2**25)
    has_half = "GeForce" in name
    if found.arch in SMS and SMS[found.arch].double_lanes == 2:
        assert found.tensor_lanes("f16") == (GEFORCE if has_half else 2 * GEFORCE)


def test_without_a_report_a_device_has_the_figures_of_the_closest_row() -> None:
    found = gpu_of("NVIDIA A10G", (8, 6))
    assert found == replace(GPUS["A10"], name="NVIDIA A10G")


@pytest.mark.parametrize("name", GPUS)
def test_users_write_names_in_any_case_and_with_any_spaces(name: str) -> None:
    spaced = name.replace("-", " ").replace("RTX", "RTX ")
    for written in (
        name,
        name.lower(),
        name.upper(),
        spaced,
        f" {spaced.lower()} ",
        f"NVIDIA {name}",
    ):
        assert gpu_named(written) is GPUS[name]
    assert gpu_named("H100 SXM") is GPUS["H100"] and gpu_named(GPUS[name]) is GPUS[name]


@pytest.mark.parametrize("wrong", ["H900", "", " ", "RTX", "A1000", None, 3, ("H200",), b"H200"])
def test_another_name_is_refused_with_those_that_there_are(wrong: object) -> None:
    with pytest.raises(
        UsageError, match=r"there are H200, H100, H100-PCIe, .*; or name a \.toml file"
    ):
        gpu_named(wrong)


def test_a_misspelt_name_has_a_hint_that_works() -> None:
    with pytest.raises(UsageError, match=r"gpu='RTX4091': did you mean RTX4090\? there are "):
        gpu_named("RTX4091")


def test_the_peaks_are_those_of_the_data_sheets() -> None:
    """TFLOP/s of f32, and of f16 (f32 accumulators) and i8 without sparsity."""
    sheets = {
        "H100-PCIe": (51.2, None, None),
        "B200": (75, 2250, 4500),
        "A100": (19.5, 312, 624),
        "A10": (31.2, 125, 250),
        "L4": (30.3, 121, 242.5),
        "L40S": (91.6, 362, 733),
        "RTX4090": (82.6, 165.2, 660.6),
        "RTX4080": (48.7, 97.5, 389.9),
        "RTX4070": (29.1, 58.3, 233.2),
        "RTX5090": (104.8, 209.5, 838),
        "RTX5080": (56.3, 112.6, 450.2),
        "RTX5070": (30.9, 61.7, 246.9),
        "RTX3090": (35.6, 71, 284),
        "T4": (8.1, 65, 130),
    }
    for name, peaks in sheets.items():
        gpu = GPUS[name]
        rates = (gpu.lanes, gpu.tensor_lanes("f16"), gpu.tensor_lanes("i8"))
        for peak, rate in zip(peaks, rates, strict=True):
            if peak is not None:
                assert 2 * rate * gpu.sms * gpu.clock == pytest.approx(peak * 1e12, rel=0.06)


def saved(folder: Path, text: str | bytes) -> Path:
    path = folder / "my.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_has_the_figures_of_a_gpu(tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD)
    assert (
        gpu_named(path) == gpu_named(str(path)) == replace(GPUS["H100"], name="H100 96GB", l2=None)
    )
    more = "l2 = 7500\ntensor_f16 = 1024\ntensor_i8 = 1\ntensor_f64 = 2\nlanes_f64 = 4\n"
    unnamed = "".join(line for line in (GOOD + more).splitlines(True) if "name" not in line)
    found = gpu_named(saved(tmp_path, unnamed))
    assert (found.name, found.l2) == ("my", 7.5e12)
    rates = [found.tensor_lanes(x) for x in ("f16", "e4m3", "tf32", "i8", "f64")]
    assert (rates, found.double_lanes) == ([1024, 2048, 512, 1, 2], 4)


def test_a_file_does_not_take_a_known_gpus_measured_results(tmp_path: Path) -> None:
    """Its figures may be others."""
    path = saved(tmp_path, GOOD.replace("H100 96GB", "h200").replace("700", "300"))
    found = gemmgen.suggest("C[m, n] = A[m, k] * B[n, k]", 4096, dtype="bf16", gpu=path)
    assert found.request.gpu.name == "h200 (my.toml)"
    assert found.reasons[0].startswith("An estimate, not measured: ")
    own = gemmgen.suggest("C[m, n] = A[m, k] * B[n, k]", 4096, dtype="bf16", gpu="h200")
    assert own.reasons[0].startswith("Measured: ")


@pytest.mark.proof
def test_python_takes_a_name_a_file_or_a_gpu(tmp_path: Path) -> None:
    path, tiled = saved(tmp_path, GOOD), "tile m=32 n=32 k=32\ncache_shared A B\n"
    for gpu in ("h100 pcie", str(path), path, replace(GPUS["H100"], sms=100)):
        own = gpu_named(gpu)
        assert gemmgen.explain(tiled, 256, gpu=gpu).explanation.gpu == own
        assert gemmgen.suggest(shape=256, gpu=gpu).request.gpu == own
        assert gemmgen.drawing(tiled, gpu=gpu).svg
        for call in (
            lambda: gemmgen.explain(tiled, gpu="x.toml"),
            lambda: gemmgen.suggest(shape=256, gpu="x.toml"),
            lambda: gemmgen.drawing(tiled, gpu="x.toml"),
        ):
            with pytest.raises(UsageError, match=r"x\.toml: no such file"):
                call()


def refused(folder: Path, text: str | bytes) -> list[str]:
    """The mistakes of a file; each has its place, and a hint."""
    with pytest.raises(UsageError) as error:
        gpu_named(saved(folder, text))
    assert isinstance(error.value, FileError) and error.value.exit_code == 2
    found = str(error.value).split("\n\n")
    assert all(one.count("  hint: ") == 1 for one in found)
    return [one.removeprefix(str(folder / "my.toml")) for one in found]


@pytest.mark.parametrize("key", ["arch", *(key for key, about in KEYS.items() if about.required)])
def test_a_missing_key_is_named(key: str, tmp_path: Path) -> None:
    text = "".join(line for line in GOOD.splitlines(True) if not line.startswith(key))
    (said,) = refused(tmp_path, text)
    assert said.startswith(f": error: the file has no `{key}`")
    assert f"add a line `{key} = ...`" in said


@pytest.mark.parametrize("key", [*KEYS, "arch", "name"])
@pytest.mark.parametrize(
    "value",
    ['""', '"x"', "true", "[1]", "{}", "0", "-1", "nan", "inf", "1e30", "1979-05-27", "'\\n'"],
)
def test_a_value_that_a_key_does_not_take_is_located(key: str, value: str, tmp_path: Path) -> None:
    if key == "name" and value in ('"x"', "'\\n'"):
        return  # a name
    text = "".join(line for line in GOOD.splitlines(True) if not line.startswith(key))
    (said,) = refused(tmp_path, f"# first\n{key} = {value}\n{text}")
    assert (
        said.startswith(f":2:1: error: `{key}`")
        and f"  hint: {'there are sm_75' if key == 'arch' else f'{key} is '}" in said
    )


@pytest.mark.parametrize("key", [*KEYS, "arch", "name"])
def test_a_misspelt_key_has_a_hint_that_works(key: str, tmp_path: Path) -> None:
    value = {"name": '"x"', "arch": '"sm_90"'}.get(key, "128")
    text = "".join(line for line in GOOD.splitlines(True) if not line.startswith(key))
    said = refused(tmp_path, f"{text}{key}_ = {value}\n")[0]
    assert f"error: there is no key `{key}_`" in said and f"did you mean `{key}`?" in said
    assert isinstance(gpu_named(saved(tmp_path, f"{text}{key} = {value}\n")), Gpu)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (GOOD.replace("sms = 132", "sms 132"), ":4:5", "this is not TOML: Expected '='"),
        (GOOD + "sms = 3\n", ":9:", "this is not TOML: "),
        (GOOD + 'x = "', ":9:5", "this is not TOML: Unterminated string"),
        (GOOD + f"x = {'1' * 5000}", "", "this is not TOML: a number has too many digits"),
        (GOOD + f"x = {'[' * 5000}", "", "this is not TOML: "),
        (GOOD + "[gpu]\nsms = 132\n", ":9:2", "there is no key `gpu`"),
        (GOOD.replace("sms", "[gpu]\nsms", 1), ":4:2", "there is no key `gpu`"),
        (GOOD.replace("sm_90", "sm_90a"), ":3:1", "`arch` = 'sm_90a' is not known"),
        (GOOD.replace("sm_90", "sm_13"), ":3:1", "`arch` = 'sm_13' is not known"),
        (GOOD.replace("H100 96GB", "a\\nb"), ":2:1", "`name` = 'a\\nb' can't be printed"),
        (b"# \xff\n", ":1:3", "the byte 0xFF is not UTF-8"),
        ('name = """\nsms = 1\n"""\nsms = "x"\n', ":4:1", "`sms` is 'x', not an integer"),
        ("", "", "the file has no `arch`, `sms`, `clock`, `memory`, `cache`, `power`"),
    ],
)
def test_a_wrong_file_is_refused_where_it_is_wrong(
    text: str | bytes, place: str, message: str, tmp_path: Path
) -> None:
    said = refused(tmp_path, text)
    assert any(one.startswith(place) and message in one for one in said), said


def test_what_is_no_file_of_ten_lines_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path, saved(tmp_path, "#" * MOST_BYTES + "#")):
        with pytest.raises(UsageError, match=r"no such file|can't be read|has more than 16 KiB"):
            gpu_named(path)


def test_a_file_with_random_changes_is_a_gpu_or_refused(tmp_path: Path) -> None:
    """Nothing else is raised."""
    draw, gpus = random.Random(20261124), 0
    for _ in range(400):
        data = bytearray(GOOD.encode())
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(data))
            data[at : at + draw.randint(0, 3)] = draw.choice(
                (b"", b'"', b"=", b"[", b"\n", b"\x00", b"9")
            )
        try:
            gpus += isinstance(gpu_named(saved(tmp_path, bytes(data))), Gpu)
        except FileError as error:
            assert str(error).startswith(str(tmp_path / "my.toml"))
    assert 40 < gpus < 360
