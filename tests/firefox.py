import json
import shutil
import socket
import subprocess
import time

import pytest

NAMES = ["firefox-esr", "firefox"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PATIENCE_SECONDS = 60
PREFERENCES = """\
user_pref("marionette.port", {port});
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""


class Firefox:
    def __init__(self, path, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "user.js").write_text(PREFERENCES.format(port=port))
        command = [path, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=silent, stderr=silent)
        self._socket = self._connected(port)
        self._received, self._number = b"", 0
        self._read()
        self.call("WebDriver:NewSession")

    def _connected(self, port):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "Firefox did not start"
                time.sleep(0.1)

    def close(self):
        self._socket.close()
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    def call(self, command, **parameters):
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _kind, number, error, result = self._read()
        assert number == self._number
        assert error is None, error
        return result.get("value", result) if isinstance(result, dict) else result

    def _read(self):
        while b":" not in self._received:
            self._receive()
        length, _, self._received = self._received.partition(b":")
        while len(self._received) < int(length):
            self._receive()
        message, self._received = self._received[: int(length)], self._received[int(length) :]
        return json.loads(message)

    def _receive(self):
        part = self._socket.recv(65536)
        assert part, "Firefox has ended"
        self._received += part

    def open(self, address):
        self.call("WebDriver:SwitchToFrame", id=None)
        self.call("WebDriver:Navigate", url=address)

    def enter_frame(self):
        self.call("WebDriver:SwitchToFrame", id=0)

    def find(self, selector):
        found = self.call("WebDriver:FindElements", using="css selector", value=selector)
        return [one[ELEMENT] for one in found]

    def displayed(self, selector):
        return [
            one for one in self.find(selector) if self.call("WebDriver:IsElementDisplayed", id=one)
        ]

    def press(self, element, keys):
        self.call("WebDriver:ElementSendKeys", id=element, text=keys)

    def name(self, element):
        """The accessible name that Firefox computes."""
        return str(self.call("WebDriver:GetComputedLabel", id=element))

    def role(self, element):
        return str(self.call("WebDriver:GetComputedRole", id=element))

    def wait_for(self, selector, text):
        """Wait until the first that matches holds the text."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        # At once: an element that was found may be gone when it is asked for its text. Between
        # two pages there is none at all.
        while text not in (
            self.call("WebDriver:ExecuteScript", script=script, args=[selector]) or ""
        ):
            assert time.monotonic() < deadline, (selector, text)
            time.sleep(0.05)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"this test drives a real Firefox; none of {', '.join(NAMES)} is installed")
    browser = Firefox(path, tmp_path_factory.mktemp("firefox"))
    yield browser
    browser.close()
