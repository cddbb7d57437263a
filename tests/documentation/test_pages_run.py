import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.pages import ROOT, blocks, walked_pages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PAGES = [str(page.relative_to(ROOT)) for page in walked_pages()]


@pytest.fixture(scope="module")
def problems():
    names = ("PATH", "HOME", "CI", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LANG")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    process = subprocess.run(
        [sys.executable, "-m", "tests.documentation.run_pages"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says_and_says_what_is_printed(page, problems):
    """`python -m tests.documentation.run_pages --write PAGE` puts in what is printed now."""
    assert not problems[page], "\n".join(problems[page])
    shown = [block for block in blocks(Path(ROOT / page)) if block.commands]
    assert shown
    assert any(block.printed and block.printed.strip() for block in shown)
