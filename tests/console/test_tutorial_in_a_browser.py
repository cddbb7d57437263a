"""The tutorial, done in a browser as it is written; `make tutorial` takes its pictures anew."""

import base64
import os
import re
import time
from contextlib import ExitStack

import pytest
from django.conf import settings
from django.core.management import call_command

from config.samples import TEST_FUNDS_USD, prepare_samples
from hits.connections import enrol_requester
from hits.loop import Marketplace
from tests.browsers import PATIENCE_MS, opened_page, rate_all, sign_in
from tests.console.conftest import PASSWORD
from tests.console.work import work_off, work_until_visible
from tests.tutorial import FOLDER, PAGE, do, steps, write_manifest

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
    pytest.mark.skipif(settings.PSEUDO_LOCALE, reason="the tutorial names controls in English"),
]
ROOT = PAGE.parents[1]
ADDRESS = "http://127.0.0.1:8000"
VIEWPORT = {"width": 1280, "height": 800}
QUALITY = 70
CONTROLS = ("button", "link", "tab", "radio", "checkbox")


class Reader:
    def __init__(self, open_page, site_url, password=PASSWORD):
        self.open_page, self.site_url, self.password = open_page, site_url, password
        self.first = self.page = open_page()
        self.files = {}
        self.downloads = {}

    def press(self, name):
        """A control of that name; one that ends in … begins so. The site's workers never rest."""
        self.work_off()
        control = self._control(name)
        # A page whose job has ended loads itself anew, and would take a click away with it.
        self.page.wait_for_load_state("networkidle")
        control.click()
        self.page.wait_for_load_state()

    def write(self, text, label):
        self.page.get_by_label(label, exact=True).fill(text)

    def choose(self, option, label):
        self.page.get_by_label(label, exact=True).select_option(label=option)

    def tick(self, name):
        self.page.get_by_label(name, exact=True).first.check()

    def upload(self, path, label):
        self.page.get_by_label(label, exact=True).set_input_files(ROOT / path)

    def log_in(self, name):
        path = "/worker/login/" if "/worker/" in self.page.url else "/login/"
        sign_in(self.page, path, name, self.password)

    def open(self, address):
        self.page.goto(self._here(address))

    def open_new(self, address):
        self.page = self.open_page()
        self.open(address)

    def go_back(self):
        self.page = self.first

    def answer(self):
        rate_all(self.page)

    def run(self, command):
        """In a terminal; what `make run` does has been done."""
        program, *words = command.split()
        if program == "python":
            assert words.pop(0) == "manage.py"
            call_command(*words, site=self.site_url)

    def read(self, text):
        work_until_visible(self.page.get_by_text(text).filter(visible=True).first)

    def download(self, name):
        with self.page.expect_download() as download:
            self._control(name).click()
        self.downloads[name] = download.value.path().read_bytes()

    def picture(self, alternative, name):
        """The window as it stands; nothing is hidden below what the text needs."""
        self.work_off()
        self.page.wait_for_load_state("networkidle")
        session = self.page.context.new_cdp_session(self.page)
        answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        self.files[name] = base64.b64decode(answer["data"])

    def work_off(self):
        """The site's workers do what waits; here they are no processes of their own."""
        work_off()

    def _here(self, address):
        return address.replace(ADDRESS, self.site_url)

    def _control(self, name):
        """On the page, or in the frame of a worker's task; whichever comes."""
        ending = "" if name.endswith("…") else r"\b"
        pattern = re.compile(f"^{re.escape(name.removesuffix('…'))}{ending}")
        frame = self.page.frame_locator("iframe#task")
        places = [_controls(root, pattern) for root in (self.page, frame)]
        # A fold's summary has no role that is looked up by name.
        places.append(self.page.locator("summary").filter(has_text=pattern, visible=True))
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < deadline:
            for place in places:
                if place.count():
                    return place.first
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{self.page.url} has no control “{name}”")


def _controls(root, pattern):
    first, *others = [root.get_by_role(role, name=pattern) for role in CONTROLS]
    for other in others:
        first = first.or_(other)
    return first.filter(visible=True)


@pytest.fixture
def reader(chromium, live_server, settings):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    key = enrol_requester(site_url=live_server.url, name="Samples", test_funds_usd=TEST_FUNDS_USD)
    prepare_samples(marketplace=Marketplace(live_server.url, key), password=PASSWORD)
    with ExitStack() as stack:

        def open_page():
            options = {"base_url": live_server.url, "viewport": VIEWPORT}
            return stack.enter_context(opened_page(chromium, **options))

        yield Reader(open_page, live_server.url)


def test_the_tutorial_is_done_as_it_is_written(reader):
    digests = {}
    for step in steps():
        do(step, reader)
        digests |= dict.fromkeys(step.pictures, step.digest)
    assert {"report.html", "report-latex.zip"} <= reader.downloads.keys()
    assert "Buy next" in reader.downloads["report.html"].decode()
    if os.environ.get("TUTORIAL"):
        for path in FOLDER.glob("*.webp"):
            path.unlink()
        for name, content in reader.files.items():
            (FOLDER / name).write_bytes(content)
        write_manifest(digests)
