"""A bridge to the tests' live server, and what programs need in their environment to use it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from marketplace.bridge import certificates, proxy

Trust = tuple[certificates.Authority, Path]


@contextmanager
def bridge_to(marketplace: proxy.Marketplace, authority: Trust) -> Iterator[proxy.Bridge]:
    reported: list[str] = []
    context = certificates.server_context(authority[0])
    with proxy.Bridge(
        0, marketplace=marketplace, context=context, report=reported.append
    ) as bridge:
        bridge.reported = reported
        thread = threading.Thread(target=bridge.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield bridge
        finally:
            bridge.shutdown()
            thread.join()


def lead_programs(
    monkeypatch: pytest.MonkeyPatch, *, proxy_url: str, bundle: str, keys: Mapping[str, str]
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy_url)
    monkeypatch.setenv("AWS_CA_BUNDLE", bundle)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["secret_access_key"])
    for name in ("NO_PROXY", "no_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
