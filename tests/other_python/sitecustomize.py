"""For a Python that its own file cannot start (tests/on_python): its name is that of what does, for tests that start
another one."""

import os
import sys

if name := os.environ.get("KPROBES_PYTHON"):
    sys.executable = sys._base_executable = name  # type: ignore[attr-defined]
