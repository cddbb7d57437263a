"""Where what is large is stored beside the database: a folder, or a bucket of an object storage."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

EXAMPLES = "s3://BUCKET/FOLDER or file:///FOLDER"
# What people sent is for the site's own user to read.
OF_ITS_USER = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
S3 = "storages.backends.s3.S3Storage"


def object_storage(url: str, endpoint_url: str, folder: Path) -> dict[str, Any]:
    """Django's settings of the storage that OBJECTS_URL names; without one, of the folder.

    Keys of a bucket are where boto3 looks for them, such as AWS_ACCESS_KEY_ID.
    """
    parts = urlsplit(url)
    if not url or (parts.scheme == "file" and parts.path and not parts.netloc):
        location = Path(parts.path) if url else folder
        backend = "work.contents.objects.SyncedFolder"
        return {"BACKEND": backend, "OPTIONS": {"location": str(location), **OF_ITS_USER}}
    if parts.scheme != "s3" or not parts.netloc or parts.query or "@" in parts.netloc:
        # Without the value, which may hold a password.
        raise ImproperlyConfigured(
            f"OBJECTS_URL is not the address of a storage, such as {EXAMPLES}."
        )
    options: dict[str, Any] = {
        "bucket_name": parts.netloc,
        "location": parts.path.strip("/"),
        # Nothing there is for the web: whoever may read it reads it by way of the site.
        "default_acl": None,
        "querystring_auth": True,
        "file_overwrite": True,
    }
    if endpoint_url:
        options["endpoint_url"] = endpoint_url
    return {"BACKEND": S3, "OPTIONS": options}
