import shutil
import subprocess

import pytest

from presentation.writers import FORMATS


def compile_latex(document, folder):
    for name, content in FORMATS["latex"](document).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return compile_folder(folder, "report")


def compile_folder(folder, name):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    return (folder / f"{name}.pdf").read_bytes()
