"""A catalogue: its items a page at a time, and files of them for a study that judges them."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.audit import record
from accounts.roles import Permission
from console.access import may_of, person
from console.tables import page_of
from presentation.row_files import CSV, Kind, RowFile, row_csv
from simulation.catalogue import Catalogue
from simulation.pages.catalogues import catalogue_for
from simulation.stored_catalogues import pictures_zip, read_stored

ITEMS, PICTURES = "items.csv", "pictures.zip"


@require_safe
def catalogue(request: HttpRequest, key: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    row = catalogue_for(request, key, Permission.VIEW)
    items = read_stored(row)
    page = page_of(request, range(len(items)))
    context = {
        "catalogue": row,
        "page": page,
        "items": [(items.ids[number], items.words(number)) for number in page],
        "has_words": bool(items.captions or items.attributes),
        "has_pictures": items.picture is not None,
        "may": may_of(request),
    }
    return render(request, "simulation/catalogue.html", context)


@require_safe
def download(request: HttpRequest, key: int, name: str) -> HttpResponse | StreamingHttpResponse:
    """Access: those who may export."""
    row = catalogue_for(request, key, Permission.EXPORT)
    items = read_stored(row)
    response: HttpResponse | StreamingHttpResponse
    if name == ITEMS:
        response = StreamingHttpResponse(row_csv(_items(items)), content_type=CSV)
    elif name == PICTURES and items.picture is not None:
        response = HttpResponse(pictures_zip(items), content_type="application/zip")
    else:
        raise Http404(f"There is no download {name}.")
    response["Content-Disposition"] = f'attachment; filename="catalogue-{row.pk}-{name}"'
    if request.method == "GET":
        details = {"file": name, "catalogue": row.pk}
        record(
            team=row.team,
            actor=person(request),
            action="export",
            subject=row.name,
            details=details,
        )
    return response


def _items(items: Catalogue) -> RowFile:
    """An item a row: its id, what is said of it, and each of its attributes."""
    kinds = items.attributes.kinds if items.attributes else ()
    columns: dict[str, Kind] = {"id": "text", "words": "text"}
    columns |= {kind.name: "text" for kind in kinds}

    def rows() -> Iterator[tuple[str, ...]]:
        for number, one in enumerate(items.ids):
            values = items.attributes.describe(number) if items.attributes else {}
            yield one, items.words(number), *(values[kind.name] for kind in kinds)

    return RowFile(columns, rows())
