"""Which catalogues an experiment may be made on, and the one that was chosen, stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from accounts.models import Team
from annotation.relevance import Source, relevance_sources
from error_codes import CorrectableError
from simulation.exceptions import CatalogueUnfit
from simulation.models import StoredCatalogue
from simulation.stored_catalogues import drawn_products, stand_ins, store_upload, vectors

if TYPE_CHECKING:
    from accounts.models import User

DRAWN, STAND_IN, SENT, STORED, EMBEDDINGS = "drawn", "stand-in", "sent", "stored", "embeddings"


def catalogue_choices(teams: list[Team]) -> list[tuple[str, str]]:
    """Drawn products, stand-ins, what is stored, and the embeddings of collections."""
    catalogues = StoredCatalogue.objects.filter(team__in=teams).order_by("-pk")
    embeddings = relevance_sources().list_embeddings(teams)
    return [
        (DRAWN, _("drawn shoes, as many as below")),
        (STAND_IN, _("stand-in embeddings, drawn for the judged ids")),
        *((f"{STORED}:{one.pk}", one.name) for one in catalogues),
        *((f"{EMBEDDINGS}:{key}", title) for key, title in embeddings),
        (SENT, _("the file that I send below")),
    ]


def chosen_catalogue(
    key: str, source: Source, team: Team, data: dict[str, Any], actor: User | None
) -> StoredCatalogue:
    """The catalogue of a choice, stored for the team if it is new; CatalogueUnfit says what is
    wrong with it."""
    kind, _colon, number = key.partition(":")
    if kind == STORED:
        return _of_team(StoredCatalogue.objects.filter(team=team, pk=int(number)).first())
    if kind == DRAWN:
        return drawn_products(
            team=team, n_items=data["n_items"], seed=data["catalogue_seed"], actor=actor
        )
    if kind == EMBEDDINGS:
        return _of_embeddings(int(number), team, actor)
    if kind == SENT:
        file = data["file"]
        return store_upload(team=team, name=file.name, file=file, actor=actor)
    judged = source.judgments()
    ids = dict.fromkeys(name for target, item, _grade in judged for name in (target, item))
    return stand_ins(team=team, ids=list(ids), seed=data["catalogue_seed"], actor=actor)


def _of_team(row: StoredCatalogue | None) -> StoredCatalogue:
    if row is None:
        raise CatalogueUnfit(
            _("The catalogue is of another team than the judgments. Choose one of the same team.")
        )
    return row


def _of_embeddings(key: int, team: Team, actor: User | None) -> StoredCatalogue:
    try:
        found = relevance_sources().read_embeddings(team, key)
    except CorrectableError as refused:
        raise CatalogueUnfit(str(refused)) from None
    if found is None:
        raise CatalogueUnfit(
            _("The embeddings are of another team than the judgments. Choose one of the same team.")
        )
    name, ids, embeddings = found
    return vectors(team=team, name=name, ids=ids, embeddings=embeddings, actor=actor)
