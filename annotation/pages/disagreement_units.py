"""The judged candidates of a study as the page of least agreement reads them."""

from collections.abc import Container

from django.db.models import Q

from accounts.roles import Permission
from annotation.models import UnitAgreement
from annotation.models.agreement import UnitAgreementQuerySet
from annotation.pages.agreement_view import AgreementView

# What a column of the page is sorted by.
UNIT_COLUMNS = {
    "agreement": "agreement",
    "item": "candidate__item__key",
    "candidate": "candidate__key",
    "condition": "candidate__item__condition",
    "n_judgments": "n_judgments",
    "mean": "mean",
}


def units_of(
    view: AgreementView, words: str = "", *, permissions: Container[str]
) -> UnitAgreementQuerySet:
    """The candidates of the view's question and round whose item's key has every word; or whose own
    key, which often is the system's name, for users who may view systems."""
    rows = UnitAgreement.objects.of(view.version).judged(view.displayed.question, view.round)
    for word in words.split():
        matches = Q(candidate__item__key__icontains=word)
        if Permission.VIEW_SYSTEMS in permissions:
            matches |= Q(candidate__key__icontains=word)
        rows = rows.filter(matches)
    # Fetched for the rows of one page, and not joined to all that stand before them.
    return rows.prefetch_related("candidate__item")


def order_of(key: str, permissions: Container[str]) -> tuple[str, str]:
    """The order that a column's key names, made total. Candidates are in the order of their blind
    keys for users who may not view systems."""
    minus = "-" if key.startswith("-") else ""
    column = UNIT_COLUMNS[key.removeprefix("-")]
    if column == "candidate__key" and Permission.VIEW_SYSTEMS not in permissions:
        column = "candidate__blind_key"
    return minus + column, minus + "pk"
