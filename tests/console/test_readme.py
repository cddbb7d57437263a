"""What the README prints, run as printed: a fresh checkout, a site, and its commands in order.

Whoever follows it has any Python as `python`, not the one of .venv, and says SITE_URL once. The
site has no samples, which take long to make; CI runs `make run` with them (.ci/run-site).
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from benchmarks.commands import free_port

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
# What the README leaves to the reader: a benchmark's files, and tests within this test.
LEFT_OUT = ("replay_lmstyle", "make test")
OF_OTHERS = ("SITE_URL", "DATABASE_URL", "SECRET_KEY", "ENCRYPTION_KEYS", "SAMPLE_PASSWORD")
PREFIXES = ("AWS_", "MARKETPLACE_", "DJANGO_", "JUDGE_", "MAKE", "PYTEST_")


def printed_commands():
    """The lines of the README's code blocks that are commands, without their comments."""
    blocks = re.findall(r"(?m)(?:^ {4}.*\n)+", (ROOT / "README.md").read_text())
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(("python ", "make "))]


def clean_environment():
    return {
        name: value
        for name, value in os.environ.items()
        if name not in OF_OTHERS and not name.startswith(PREFIXES)
    }


@pytest.fixture
def bare_python(tmp_path):
    folder = tmp_path / "bare"
    venv.create(folder, with_pip=False, symlinks=True)
    if not (folder / "bin" / "python3.11").exists():
        (folder / "bin" / "python3.11").symlink_to("python")
    return folder / "bin"


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "assay"
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    for name in map(os.fsdecode, names.split(b"\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def install_libraries(checkout):
    (checkout / ".venv").unlink(missing_ok=True)
    (checkout / ".venv").symlink_to(sys.prefix)
    os.utime(checkout / "requirements.txt", (0, 0))


@pytest.fixture
def shell(bare_python, checkout):
    environment = clean_environment() | {"PATH": f"{bare_python}:{os.environ['PATH']}"}

    def run(line, **more):
        return subprocess.run(
            line,
            shell=True,
            cwd=checkout,
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
        )

    run.environment = environment
    return run


def test_any_python_goes_on_in_the_venv_or_says_how_to_make_one(checkout, bare_python, shell):
    for has_bare_venv in (False, True):
        if has_bare_venv:  # without libraries it is not started for ever
            (checkout / ".venv").symlink_to(bare_python.parent)
        process = shell("python manage.py collect_study my-study")
        assert (process.returncode, process.stdout) == (2, "")
        assert "`make run`" in process.stderr
        assert ".venv" in process.stderr
        assert "Traceback" not in process.stderr
    install_libraries(checkout)
    process = shell("python manage.py agreement --help")
    assert process.returncode == 0, process.stderr
    assert "--annotator" in process.stdout


# In the place of the samples: the account and the key that the commands need.
PREPARATION = """
from django.conf import settings
from config.samples import prepare_accounts, prepare_key
from hits.loop import served_site
with served_site() as url:
    prepare_key(url)
    prepare_accounts(url, settings.SAMPLE_PASSWORD)
"""


@pytest.fixture
def site(checkout, shell, tmp_path):
    """The address of a site, told in its environment, that serves as `make run` does."""
    install_libraries(checkout)
    url, log = f"http://127.0.0.1:{free_port()}", tmp_path / "run.log"
    recipe = shell("make -n run", SITE_URL=url).stdout.splitlines()
    *prepared, serving = [line for line in recipe if "-m pip" not in line]
    for line in prepared:
        if "load_samples" in line:
            line = f"python manage.py shell -v 0 -c {shlex.quote(PREPARATION)}"
        process = shell(line, SITE_URL=url)
        assert process.returncode == 0, f"{line}\n{process.stdout}\n{process.stderr}"
    with log.open("w") as output:
        process = subprocess.Popen(
            shlex.split(serving),
            cwd=checkout,
            env=shell.environment | {"SITE_URL": url},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while "Ctrl-C" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.5)
        yield url
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def write_plain_files(folder):
    shutil.copy(folder / "samples" / "responses.csv", folder)
    labels = [
        f"i{item},{who},{(item + item * index) % 2}"
        for item in range(40)
        for index, who in enumerate(("ann", "bob", "cid", "gpt"))
    ]
    (folder / "labels.csv").write_text("\n".join(["item,who,label", *labels, ""]))
    ratings = [
        f"i{item},w{worker},s{system},{(3 * item + 5 * worker) % 7 + system * (1 + worker % 2)}"
        for item in range(10)
        for worker in range(6)
        for system in range(2)
    ]
    (folder / "ratings.csv").write_text("\n".join(["item,worker,system,rating", *ratings, ""]))
    judged = [
        f"i{item},s{system},{(item + system) % 5 if item < 20 else ''},{(item * 7 + system) % 5}"
        for item in range(60)
        for system in range(2)
    ]
    (folder / "judged.csv").write_text("\n".join(["item,system,rating,gpt", *judged, ""]))
    rows = [
        f"i{item},s{system},{item + system * 3 % 5},0.{item}{system},{item * system % 7}"
        for item in range(6)
        for system in range(4)
    ]
    (folder / "table.csv").write_text("\n".join(["item,system,rating,bleu,nll", *rows, ""]))
    (folder / "qrels.txt").write_text("".join(f"{n} 0 a 1\n{n} 0 b 0\n" for n in range(6)))
    for name, first in (("bm25", "b"), ("dense", "a")):
        lines = (f"{n} Q0 {doc} 1 {doc == first:d} {name}\n" for n in range(6) for doc in "ab")
        (folder / f"{name}.run").write_text("".join(lines))


@pytest.mark.timeout(1200)
def test_the_commands_of_the_readme_run_as_printed(checkout, site, shell):
    write_plain_files(checkout)
    lines = [line for line in printed_commands() if not any(name in line for name in LEFT_OUT)]
    assert lines[0] == "make run"
    assert len(lines) >= 12
    outputs = {}
    for line in lines[1:]:
        process = shell(line)
        assert process.returncode == 0, f"{line}\n{process.stdout}\n{process.stderr}"
        outputs[line] = process.stdout
    # Answers come in by themselves too: the site's own collection may have been before the command.
    approval = next(output for line, output in outputs.items() if "approve_study" in line)
    assert re.search(r"\b[1-9]\d*\b", approval), approval
    assert (checkout / "report").is_dir()
    assert f"SITE_URL={site}\n" in (checkout / ".env").read_text()

    elsewhere = shell("python manage.py collect_study my-study", SITE_URL="http://127.0.0.1:9")
    assert elsewhere.returncode == 2
    assert "http://127.0.0.1:9/requester" in elsewhere.stderr
    other_key = shell(
        "python manage.py collect_study my-study", MARKETPLACE_ACCESS_KEY_ID="AKIDNOTOFTHISSITE000"
    )
    assert other_key.returncode == 2
    assert f"{site}/requester" in other_key.stderr
    assert "SITE_URL" in other_key.stderr
