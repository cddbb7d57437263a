"""A real Chromium, for the tests that drive pages as people do."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ["chromium", "chromium-browser", "google-chrome"]


def chromium_path() -> str:
    """Where Chromium is; without one the test skips, but in continuous integration it fails."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        told = f"this test drives a real browser; none of {', '.join(NAMES)} is installed"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(told)
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Chromium, shared by the tests of one module; open a context of your own in it."""
    path = chromium_path()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, which Django takes for async code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()
