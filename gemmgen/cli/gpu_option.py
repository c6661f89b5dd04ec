"""``--gpu``: a known GPU by its name in any case, a file with its figures, or ``list``."""

from __future__ import annotations

import click

from gemmgen.analyze.plain_text import plain
from gemmgen.analyze.section import Section
from gemmgen.cli.files import put
from gemmgen.gpu.gpu_file import KEYS
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.gpu.gpus import DEFAULT, GPUS, Gpu

LIST = "list"
HEADER = ("", "arch", "SMs", "MHz", "f32 TFLOP/s", "bf16 TFLOP/s", "GB/s", "L2 MiB", "W")


def _gpu(text: str) -> Gpu:
    """The type of the option; ``list`` ends the command."""
    if text.lower() == LIST:
        put(f"{plain(known_gpus())}\n{plain(file_keys())}")
        click.get_current_context().exit()
    return gpu_named(text)


def known_gpus() -> Section:
    """The GPUs that have a name."""
    rows = tuple(
        (
            gpu.name,
            gpu.arch,
            f"{gpu.sms}",
            f"{gpu.clock / 1e6:.0f}",
            f"{gpu.flops / 1e12:.1f}",
            f"{2 * gpu.sms * gpu.clock * gpu.tensor_lanes('bf16') / 1e12:.0f}",
            f"{gpu.memory / 1e9:.0f}",
            f"{gpu.cache / 2**20:.0f}",
            f"{gpu.power:.0f}",
        )
        for gpu in GPUS.values()
    )
    notes = ("bf16: of tensor cores with f32 accumulators, without sparsity, at the boost clock",)
    return Section("known GPUs", HEADER, rows, notes)


def file_keys() -> Section:
    """The keys of a file."""
    rows = (
        ("name", "", "what reports call the GPU; the file's name by default"),
        ("arch", "required", 'its architecture, "sm_90" say'),
        *((name, "required" if key.required else "", key.about) for name, key in KEYS.items()),
    )
    return Section("keys of a file, --gpu my.toml", (), rows)


gpu = click.option(
    "--gpu",
    type=_gpu,
    metavar="NAME|FILE.toml",
    default=DEFAULT,
    show_default=True,
    help="A known GPU, a file with its figures, or `list`, which prints both.",
)
