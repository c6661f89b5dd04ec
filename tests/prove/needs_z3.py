"""What a test says that needs the solver."""

import pytest

z3 = pytest.importorskip("z3", reason="z3-solver is not installed")
