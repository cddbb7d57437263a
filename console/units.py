"""The judged candidates of a study as the page of least agreement reads them."""

from django.db.models import Q

from annotation.models import UnitAgreement
from annotation.models.agreement import UnitAgreementQuerySet
from console.agreement_view import AgreementView

# What a column of the page is sorted by.
UNIT_COLUMNS = {
    "agreement": "agreement",
    "item": "candidate__item__key",
    "candidate": "candidate__key",
    "condition": "candidate__item__condition",
    "n_judgments": "n_judgments",
    "mean": "mean",
}


def units_of(view: AgreementView, words: str = "") -> UnitAgreementQuerySet:
    """The candidates of the view's question and round whose item's and own key
    have every word."""
    rows = UnitAgreement.objects.of(view.version).judged(view.displayed.question, view.round)
    for word in words.split():
        rows = rows.filter(
            Q(candidate__item__key__icontains=word) | Q(candidate__key__icontains=word)
        )
    # Fetched for the rows of one page, and not joined to all that stand before them.
    return rows.prefetch_related("candidate__item")


def order_of(key: str) -> tuple[str, str]:
    """The order that a column's key names, made total."""
    minus = "-" if key.startswith("-") else ""
    return minus + UNIT_COLUMNS[key.removeprefix("-")], minus + "pk"
