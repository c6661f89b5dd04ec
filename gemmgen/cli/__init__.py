"""The command line: ``gemmgen COMMAND``, one file a command."""

from gemmgen.cli.group import main

__all__ = ["main"]
