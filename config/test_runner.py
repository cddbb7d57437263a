"""`manage.py test`: pytest, which `make test` runs on several cores."""

import subprocess
import sys
from typing import Any


class PytestRunner:
    def __init__(self, verbosity: int = 1, failfast: bool = False, **kwargs: Any) -> None:
        self.options = ["-x"] if failfast else []
        self.options += ["-v"] if verbosity > 1 else []

    def run_tests(self, test_labels: list[str], **kwargs: Any) -> int:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *self.options, *test_labels], check=False
        ).returncode
