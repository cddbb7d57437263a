"""Writes deploy/requirements.lock: each library at one version, with hashes, for Python 3.11 on.

    pip install uv && python deploy/lock.py

torch stays out, since images take it from the index for CPUs, and so do the GPU libraries that it
names.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "deploy" / "requirements.lock"
OF_GPUS = re.compile(r"(nvidia-|cuda-|triton==)")
COMMAND = [
    *("uv", "pip", "compile", "requirements-models.txt", "--universal", "--python-version", "3.11"),
    *("--generate-hashes", "--no-emit-package", "torch", "--no-header", "--no-annotate", "--quiet"),
]
HEADER = "# Made by `python deploy/lock.py` of requirements-models.txt, without torch.\n"


def main() -> int:
    compiled = subprocess.run(COMMAND, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    entries = re.split(r"\n(?=\S)", compiled.stdout.strip())
    kept = [entry for entry in entries if not OF_GPUS.match(entry)]
    LOCK.write_text(HEADER + "\n".join(kept) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
