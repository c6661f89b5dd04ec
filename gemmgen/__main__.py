"""``python -m gemmgen``, and the command ``gemmgen``."""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C, by the convention of shells."""


def run() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as later on."""
    try:
        from gemmgen.cli import main

        main(prog_name="gemmgen")
    except KeyboardInterrupt:
        sys.stderr.write("gemmgen: interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # else Python searches all objects for cycles at its end: a tenth of ``emit``


if __name__ == "__main__":
    run()
