"""Qualification types of our own at a marketplace: made once, under a name that says what of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceRefused
from hits.foreign_records import identifier
from hits.listings import listed

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

EXISTS = "QualificationTypeAlreadyExists"


def create_type(client: MTurkClient, *, name: str, description: str, **values: Any) -> str:
    """The id of the requester's type of this name: made, or the one that an attempt made whose
    answer was lost."""
    try:
        with translated_errors():
            answer = client.create_qualification_type(
                Name=name, Description=description, QualificationTypeStatus="Active", **values
            )
    except MarketplaceRefused as refusal:
        type_id = _type_of_name(client, name) if refusal.has_code(EXISTS) else None
        if type_id is None:
            raise
        return type_id
    return identifier(answer.get("QualificationType", {}), "QualificationTypeId")


def _type_of_name(client: MTurkClient, name: str) -> str | None:
    types = listed(
        client,
        "list_qualification_types",
        "QualificationTypes",
        "QualificationTypeId",
        Query=name,
        MustBeRequestable=False,
        MustBeOwnedByCaller=True,
    )
    matches = (
        identifier(each, "QualificationTypeId") for each in types if each.get("Name") == name
    )
    return next(matches, None)
