from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from django.test import Client

ENDPOINT_URL = "http://127.0.0.1:8000/requester"
ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})


class _Body:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self) -> Iterator[bytes]:
        yield self.content


def network_client(
    endpoint_url: str, requester_keys: Mapping[str, str], config: Config = ONE_ATTEMPT
) -> Any:
    """An ordinary boto3 client; `requester_keys` is what `create_requester --json` prints."""

    import boto3

    return boto3.client(
        "mturk",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=requester_keys["access_key_id"],
        aws_secret_access_key=requester_keys["secret_access_key"],
        config=config,
    )


def in_process_client(requester_keys: Mapping[str, str], config: Config = ONE_ATTEMPT) -> Any:
    """A boto3 client whose signed requests go straight into this process's site."""
    client = network_client(ENDPOINT_URL, requester_keys, config)
    client.meta.events.register("before-send.mturk.*", send_in_process)
    return client


def send_in_process(request: AWSPreparedRequest, **kwargs: Any) -> AWSResponse:
    parts = urlsplit(request.url)
    headers = {name: _text(value) for name, value in request.headers.items()}
    content_type = headers.pop("Content-Type", "")
    headers.pop("Content-Length", None)
    response = Client().generic(
        request.method,
        f"{parts.path}?{parts.query}" if parts.query else parts.path,
        request.body or b"",
        content_type=content_type,
        headers={"Host": parts.netloc, **headers},
    )
    raw: Any = _Body(response.content)
    return AWSResponse(request.url, response.status_code, dict(response.items()), raw)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
