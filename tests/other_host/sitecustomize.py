"""Python imports this when it starts with this folder on PYTHONPATH."""

import os

from as_another_host import change

if os.environ.get("KPROBES_AS"):
    change(os.environ["KPROBES_AS"])
