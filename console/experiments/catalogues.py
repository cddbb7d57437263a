"""Which catalogues an experiment may be made on, and the one that was chosen, stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from accounts.models import Team
from console.experiments.sources import Source
from retrieval.collection_files import files_on_disk
from retrieval.exceptions import RetrievalError
from retrieval.models import CollectionFile
from retrieval.source_files import vectors_of
from simulation.exceptions import CatalogueUnfit
from simulation.models import StoredCatalogue
from simulation.stored_catalogues import drawn_products, stand_ins, store_upload, vectors

if TYPE_CHECKING:
    from accounts.models import User

DRAWN, STAND_IN, SENT, STORED, EMBEDDINGS = "drawn", "stand-in", "sent", "stored", "embeddings"


def catalogue_choices(teams: list[Team]) -> list[tuple[str, str]]:
    """Drawn products, stand-ins, what is stored, and the embeddings of collections."""
    catalogues = StoredCatalogue.objects.filter(team__in=teams).order_by("-pk")
    files = CollectionFile.objects.usable().embeddings().filter(collection__team__in=teams)
    rows = files.select_related("collection").defer("faults").order_by("-pk")
    text = _("embeddings {name} of {collection}")
    return [
        (DRAWN, _("drawn shoes, as many as below")),
        (STAND_IN, _("stand-in embeddings, drawn for the judged ids")),
        *((f"{STORED}:{one.pk}", one.name) for one in catalogues),
        *(
            (f"{EMBEDDINGS}:{one.pk}", text.format(name=one.name, collection=one.collection))
            for one in rows
        ),
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
        files = CollectionFile.objects.filter(collection__team=team, pk=int(number))
        return _of_embeddings(files.first(), team, actor)
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


def _of_embeddings(file: CollectionFile | None, team: Team, actor: User | None) -> StoredCatalogue:
    if file is None:
        raise CatalogueUnfit(
            _("The embeddings are of another team than the judgments. Choose one of the same team.")
        )
    try:
        with files_on_disk([file]) as [path], vectors_of(path) as opened:
            ids = [str(one) for one in opened.names]
            return vectors(
                team=team, name=file.name, ids=ids, embeddings=opened.array[:], actor=actor
            )
    except RetrievalError as refused:
        raise CatalogueUnfit(str(refused)) from None
