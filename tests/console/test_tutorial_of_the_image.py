"""The tutorial, done at a site of the image alone; `make image` makes one without a registry.

ROOTFS names the root file system (deploy/rootfs.py). It runs as the image would: its CMD and a
worker, as its user, with nothing from this checkout but the steps of the tutorial.
"""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from benchmarks.commands import free_port
from tests.browsers import opened_page
from tests.console.test_tutorial_in_a_browser import VIEWPORT, Reader
from tests.tutorial import PAGE, do, steps

ROOT = PAGE.parents[1]
ROOTFS = os.environ.get("ROOTFS", "")
STORED = Path(ROOTFS) / "srv/assay/output"
START_SECONDS = 180
PATIENCE_SECONDS = 180

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not ROOTFS, reason="no root file system is named; `make image` makes one"),
]


class Image:
    """Commands in the image, each as `docker run` would start it."""

    def __init__(self, site_url):
        self.site_url, self.processes = site_url, []
        # In the one folder that it may write to, which is a volume.
        database = "sqlite:////srv/assay/output/site.sqlite3"
        self.settings = {"SITE_URL": site_url, "DATABASE_URL": database}

    @property
    def password(self):
        """What `python -m config.environment` made up."""
        return re.search(r"^SAMPLE_PASSWORD=(.+)$", (STORED / "site.env").read_text(), re.M)[1]

    def command(self, *words):
        sets = [f"--set={name}={value}" for name, value in self.settings.items()]
        return [sys.executable, "deploy/rootfs.py", *sets, "run", ROOTFS, "--", *words]

    def run(self, *words):
        subprocess.run(self.command(*words), cwd=ROOT, check=True)

    def start(self, *words):
        self.processes.append(subprocess.Popen(self.command(*words), cwd=ROOT))

    def wait_until_it_is_ready(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with suppress(OSError), urlopen(f"{self.site_url}/readyz", timeout=5) as answer:
                assert answer.status == 200
                return
            time.sleep(0.5)
        raise TimeoutError("The site is not ready.")

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


class ReaderOfTheImage(Reader):
    """The same reader; the site's workers are processes, and are waited for."""

    def __init__(self, open_page, image):
        super().__init__(open_page, image.site_url, image.password)
        self.image, self.pressed = image, ""

    def press(self, name):
        self.pressed = name
        super().press(name)

    def work_off(self):
        """They do so by themselves."""

    def run(self, command):
        if command.startswith("python "):
            self.image.run(*command.split())

    def read(self, text):
        """It comes; where the page says so, what was pressed is pressed again."""
        wanted = self.page.get_by_text(text).filter(visible=True).first
        end = time.monotonic() + PATIENCE_SECONDS
        while not wanted.is_visible() and time.monotonic() < end:
            self.page.wait_for_timeout(1000)
            if self.page.get_by_text("Press again in a moment").is_visible():
                super().press(self.pressed)
        expect(wanted).to_be_visible()

    def picture(self, alternative, name):
        """The pictures are those of `make tutorial`."""


@pytest.fixture
def image():
    command = json.loads(Path(ROOTFS).with_suffix(".json").read_text())["command"]
    port = free_port()
    image = Image(f"http://127.0.0.1:{port}")
    for path in STORED.iterdir():
        path.unlink()
    try:
        image.run("python", "-m", "config.environment")
        image.run("python", "manage.py", "migrate", "--verbosity", "0")
        image.run("python", "manage.py", "load_samples")
        bound = [each.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for each in command]
        assert bound != command
        image.start(*bound)
        image.start("python", "manage.py", "run_worker")
        image.wait_until_it_is_ready()
        yield image
    finally:
        image.end()


def test_the_tutorial_is_done_at_a_site_of_the_image_alone(chromium, image):
    with ExitStack() as stack:

        def open_page():
            options = {"base_url": image.site_url, "viewport": VIEWPORT}
            return stack.enter_context(opened_page(chromium, **options))

        reader = ReaderOfTheImage(open_page, image)
        for step in steps():
            do(step, reader)
        assert {"report.html", "report-latex.zip"} <= reader.downloads.keys()
        assert "Buy next" in reader.downloads["report.html"].decode()
    # What the site stores stands where it may, under its own user.
    assert (STORED / "site.sqlite3").stat().st_uid == 10001
