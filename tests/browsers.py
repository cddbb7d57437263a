import os
import shutil
import time
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect, sync_playwright

# The first draws no windows, and takes two thirds of the time.
NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
# For what comes at once on a machine that has nothing else to do.
PATIENCE_MS = 60_000


def chromium_path():
    """Where Chromium is; without one the test skips, but in continuous integration it fails."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        message = f"this test drives a real browser; none of {', '.join(NAMES)} is installed"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    return path


@pytest.fixture(scope="module")
def chromium():
    """Chromium, shared by the tests of one module; open a context of your own in it."""
    path = chromium_path()
    expect.set_options(timeout=PATIENCE_MS)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, which Django takes for async code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@contextmanager
def opened_page(browser, **options):
    with browser.new_context(**options) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()


def sign_in(page, path, name, password):
    page.goto(path)
    page.locator("[name=username], [name=login]").fill(name)
    page.locator("[name=password]").fill(password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login/" not in url)


def wait_until(page, expression):
    """Wait for an expression to be true; Playwright's own waiting is refused by the policy."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def rate_all(page):
    task = page.frame_locator("iframe#task")
    expect(task.locator("#progress")).not_to_be_empty()
    for number, slider in enumerate(task.get_by_role("slider").all()):
        box = slider.bounding_box()
        assert box
        x = box["width"] * (1 + number % 8) / 9
        slider.click(position={"x": x, "y": box["height"] / 2})
