import shutil
import subprocess

import pytest

from presentation.formats import FORMATS


def compile_latex(document, folder):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    for name, content in FORMATS["latex"](document).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    return (folder / "report.pdf").read_bytes()
