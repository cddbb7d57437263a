"""The addresses of a collection, and what each needs; whoever adds one adds a line here."""

from django.urls import reverse

from accounts.roles import Permission
from annotation.models import Study
from retrieval.models import CollectionFile
from work.models import Job

# What a page of a collection needs, and an action that is posted to it.
PAGES_OF_A_COLLECTION = {
    **dict.fromkeys(
        [
            *("collection", "collection-files", "collection-file", "collection-evaluation"),
            *("collection-picture", "collection-work", "collection-pools", "collection-pool"),
            *("collection-reuse-picture", "collection-trust-picture"),
            *("collection-machine-picture", "collection-audit-picture"),
            *("collection-judgments", "collection-trust", "collection-reuse", "collection-audit"),
            "collection-machine",
            *("collection-targets", "collection-report"),
        ],
        Permission.VIEW,
    ),
    **dict.fromkeys(
        [
            *("collection-file-content", "collection-download", "collection-pool-file"),
            *("collection-table", "collection-targets-file", "collection-report-file"),
        ],
        Permission.EXPORT,
    ),
    "collection-delete": Permission.OWN,
}
ACTIONS_OF_A_COLLECTION = {
    "collection-studies": Permission.EDIT,
    "collection-file-remove": Permission.EDIT,
    **dict.fromkeys(
        [
            *("collection-source", "collection-vectors"),
            *("collection-pool-study", "collection-study-qrels", "collection-file-qrels"),
        ],
        Permission.EDIT,
    ),
    # Of a job that evaluates.
    **dict.fromkeys(["collection-stop", "collection-again"], Permission.ANALYSE),
}
# For anybody signed in.
COLLECTIONS = {"collections", "new-collection"}
# What an address names beside the collection.
PARTS: dict[str, dict[str, object]] = {
    "collection-file": {"file_id": 1},
    "collection-file-remove": {"file_id": 1},
    "collection-file-content": {"file_id": 1},
    "collection-file-qrels": {"file_id": 1},
    "collection-work": {"job_id": 1},
    "collection-stop": {"job_id": 1},
    "collection-again": {"job_id": 1},
    "collection-study-qrels": {"study_id": 1},
    "collection-targets-file": {"number": 1},
    "collection-report-file": {"number": 1},
    "collection-pool": {"number": 1},
    "collection-pool-study": {"number": 1},
    "collection-pool-file": {"number": 1, "form": "csv"},
    "collection-picture": {"chart": "topics", "form": "json"},
    "collection-reuse-picture": {"chart": "left-out", "form": "json"},
    "collection-trust-picture": {"chart": "ranks", "form": "json"},
    "collection-machine-picture": {"chart": "means", "form": "json"},
    "collection-audit-picture": {"chart": "findings", "form": "json"},
    "collection-download": {"name": "means.csv"},
    "collection-table": {"kind": "comparison", "name": "rankings", "form": "csv"},
}
OF_A_COLLECTION = {
    name: {"slug": "tracks"} | PARTS.get(name, {})
    for name in PAGES_OF_A_COLLECTION | ACTIONS_OF_A_COLLECTION
}
# What each table's number is of.
STORED = {"file_id": CollectionFile, "job_id": Job, "study_id": Study}


def address_of(name: str) -> str:
    """An address of the collection `tracks`, whose numbers are of the first row of a table."""
    parts = dict(OF_A_COLLECTION[name])
    for part, model in STORED.items():
        if part in parts:
            parts[part] = model._default_manager.order_by("pk")[0].pk
    return reverse(f"console:{name}", kwargs=parts)
