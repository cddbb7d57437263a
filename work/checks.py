from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from work.contents import delete_object, read_object, write_object
from work.exceptions import ContentMissing

REFUSALS = (OSError, BotoCoreError, ClientError, ContentMissing)


@register(Tags.files, deploy=True)
def check_objects(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    if not settings.CONTENT_IN_OBJECTS:
        return []
    try:
        stored = write_object(b"check --deploy")
        read_object(stored)
        delete_object(stored)
    except REFUSALS as refused:
        return [
            Error(
                "Nothing can be stored, read and deleted in the storage that OBJECTS_URL names: "
                f"{refused}",
                hint="Name one that is there, with keys that may do all three "
                "(docs/operations.md).",
                id="work.E001",
            )
        ]
    return []
