"""Runs the commands of tutorials and how-tos, each page on a site as `make run` leaves it.

    python -m tests.documentation.run_pages [PAGE ...]    says what went wrong, as JSON
    python -m tests.documentation.run_pages --write ...   puts what is printed into the pages

In one process, with a database of its own: starting Django for each command would take minutes.
"""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.documentation.pages import ROOT, blocks, walked_pages

LEFT_OUT = "…"
PASSWORD = "a-long-and-winding-password"
# What a page may read of the checkout; all it writes goes into a folder that is thrown away.
READ = ("samples", "docs", "metrics")


def prepare(folder):
    database = folder / "template.sqlite3"
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": f"sqlite:///{database}",
        "SITE_URL": "http://127.0.0.1:8000",
        "SAMPLE_PASSWORD": PASSWORD,
        "TASKS_BACKEND": "database",
    }
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.MARKETPLACE_TEST_FUNDS = True
    # Nobody needs the database after a power cut.
    settings.DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    return database


@contextlib.contextmanager
def site(template, folder):
    from django.conf import settings
    from django.db import connection, connections

    from config import samples
    from hits.loop import served_site

    database = folder / "page.sqlite3"
    connection.close()
    shutil.copy(template, database)
    connections.settings["default"]["NAME"] = str(database)
    connection.settings_dict["NAME"] = str(database)
    with served_site() as url:
        settings.SITE_URL = url
        settings.MARKETPLACE_ENDPOINT_URL = f"{url}/requester"
        samples.prepare_accounts(url, PASSWORD)
        key = samples.prepare_key(url, folder / "env")
        settings.MARKETPLACE_ACCESS_KEY_ID = key.access_key_id
        settings.MARKETPLACE_SECRET_ACCESS_KEY = key.secret_access_key
        yield
    connection.close()


def run_page(page, template, *, write=False):
    """What is wrong with the page: commands that fail, or print something else."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in READ:
            (folder / each).symlink_to(ROOT / each)
        os.chdir(folder)
        try:
            with site(template, folder):
                return _run_blocks(page, write=write)
        finally:
            os.chdir(before)


def _run_blocks(page, *, write):
    problems, outputs = [], []
    for block in blocks(page):
        output = ""
        for command in block.commands:
            printed, problem = run(command)
            output += printed
            if problem:
                problems.append(f"line {block.line}: {command}\n{printed}\n{problem}")
                break
        outputs.append((block, output))
        if block.printed is not None and not write:
            problems += [f"line {block.line}: it prints\n{output}"] * (not _is_in(block, output))
    if write:
        _write(page, outputs)
    return problems


def run(command):
    """What a command prints, and why it failed; empty where it did not."""
    from config.commandline import main as run_command

    words = shlex.split(command, comments=True)
    if words[:2] != ["python", "manage.py"]:
        return "", f"{command!r} is not a command of manage.py"
    stream, code = io.StringIO(), 0
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            code = run_command(words[1:])
        except SystemExit as error:
            code = int(error.code or 0)
    return stream.getvalue(), f"exit code {code}" if code else ""


def _is_in(block, output):
    """Whether the lines that the page shows come in the output, in that order; … is any others, and
    within a line whatever goes by chance."""
    printed = iter(line.rstrip() for line in output.splitlines())
    wanted = (line.rstrip() for line in (block.printed or "").splitlines())
    patterns = [
        re.compile(".*".join(map(re.escape, line.split(LEFT_OUT))))
        for line in wanted
        if line.strip() not in ("", LEFT_OUT)
    ]
    return all(any(pattern.fullmatch(line) for line in printed) for pattern in patterns)


def _write(page, outputs):
    """Put what was printed where the page has a block for it; a page's own cuts are kept."""
    text = page.read_text("utf-8")
    for block, output in reversed(outputs):
        is_empty = not (block.printed or "").strip()
        if block.span and (is_empty or not _is_in(block, output)):
            lines = [line.rstrip() for line in output.strip("\n").splitlines()]
            text = text[: block.span[0]] + "\n".join(lines) + "\n" + text[block.span[1] :]
    page.write_text(text, "utf-8")


def main(words):
    write = "--write" in words
    named = [Path(word).resolve() for word in words if word != "--write"]
    with tempfile.TemporaryDirectory() as name:
        begun = monotonic()
        template = prepare(Path(name))
        sys.stderr.write(f"prepared: {monotonic() - begun:.1f} s\n")
        found = {}
        for page in named or walked_pages():
            begun = monotonic()
            found[str(page.relative_to(ROOT))] = run_page(page, template, write=write)
            sys.stderr.write(f"{page.name}: {monotonic() - begun:.1f} s\n")
    sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
