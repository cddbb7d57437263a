from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest

from annotation import agreement, exceptions, frames, imports, models, new_studies, units
from annotation.pairs import item_sizes, with_pairs
from annotation.protocols import documents, records
from annotation.protocols.validation import document_faults
from annotation.protocols.versions import current_document, discard_draft, freeze, save_draft
from annotation.readers.drafts import CandidateDraft, ItemDraft, StudyDraft
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import codes_of, refused

SYSTEMS = ("alpha", "beta", "gamma")
BETTER = records.ProtocolQuestion("better", "preference", "Which is better?", ties=True)
RATED = records.ProtocolDocument((BETTER,), title="Compare")
ALL = with_pairs(RATED, records.Pairs("all"))
BALANCED = with_pairs(RATED, records.Pairs("balanced", per_item=1))

pytestmark = pytest.mark.django_db


def contents(study: models.Study) -> list[tuple[object, ...]]:
    of_item = ("key", "condition", "context", "reference", "picture__sha256", "position")
    of_candidate = ("key", "blind_key", "system", "text", "picture__sha256", "position")
    names = (*of_item, *(f"candidates__{name}" for name in of_candidate))
    return sorted(study.items.values_list(*names), key=repr)


def pictured_study(n_items: int = 6) -> models.Study:
    study = rating_study(n_items=n_items, systems=SYSTEMS, conditions=("formal", "casual"))
    picture = models.Picture.objects.create(sha256="a" * 64, media_type="image/png", content=b"png")
    study.items.filter(key="d1").update(picture=picture)
    models.Candidate.objects.filter(item__key="d2", system="beta").update(picture=picture)
    return study


def test_items_become_pairs_and_come_back_as_they_were():
    study = pictured_study()
    before = contents(study)
    save_draft(study=study, document=ALL)
    assert study.items.count() == item_sizes(study).n_pairs(ALL.pairs) == 18
    first = [each.key for each in study.items.filter(source__key="d0")]
    assert len(first) == 3
    assert all(key.startswith("d0:") and not set(SYSTEMS) & set(key.split()) for key in first)
    for item in study.items.select_related("source"):
        left, right = item.candidates.all()
        places = [SYSTEMS.index(each.system) + 1 for each in (left, right)]
        assert item.key == f"{item.source.key}:{places[0]}-{places[1]}"
        assert (item.context, item.picture) == (item.source.context, item.source.picture)
    save_draft(study=study, document=BALANCED)  # another design of the same items
    assert study.items.count() == item_sizes(study).n_pairs(BALANCED.pairs) == 6
    assert (item_sizes(study).least, item_sizes(study).most) == (3, 3)
    pairs = Counter(
        frozenset(item.candidates.values_list("key", flat=True)) for item in study.items.all()
    )
    assert set(pairs.values()) == {2}
    drawn = contents(study)
    save_draft(study=study, document=replace(BALANCED, title="Other words"))
    assert contents(study) == drawn  # nothing is drawn again
    save_draft(study=study, document=RATED)
    assert contents(study) == before
    assert not study.source_items.exists()
    save_draft(study=study, document=BALANCED)
    assert contents(study) == drawn
    assert discard_draft(study=study)
    assert contents(study) == before


def test_copies_and_new_items_of_a_study_of_pairs(django_user_model):
    study = rating_study(n_items=3, systems=SYSTEMS)
    save_draft(study=study, document=ALL)
    owner = django_user_model.objects.create_user("rosa")
    copy = new_studies.copy_study(source=study, title="Copy", owner=owner, team=None)
    keys = list(study.items.values_list("key", flat=True))
    assert list(copy.items.values_list("key", flat=True)) == keys
    save_draft(study=copy, document=RATED)
    assert copy.items.count() == 3
    more = ItemDraft("d3", tuple(CandidateDraft(name, name, "text") for name in SYSTEMS), 2)
    draft = StudyDraft(kind="rating", items=[more])
    imports.import_study(draft=draft, path=Path("more.csv"), slug=study.slug)
    assert study.items.count() == 12
    assert study.source_items.count() == 4


def test_pairs_that_cannot_be_are_refused():
    unordered = replace(ALL, order=RATED.order)
    assert codes_of(document_faults(documents.plain_document(unordered))) == ["order_of_pairs"]
    assert document_faults(documents.plain_document(ALL)) == []
    assert with_pairs(ALL, None) == RATED
    with refused(exceptions.StudyUnfit, "pairs_of_alternatives"):
        save_draft(study=alternatives_study(), document=ALL)
    with refused(exceptions.StudyUnfit, "too_few_candidates"):
        save_draft(study=rating_study("one", systems=("alpha",)), document=ALL)
    study = rating_study("published", systems=SYSTEMS)
    save_draft(study=study, document=RATED)
    freeze(study=study)
    with refused(exceptions.StudyUnfit, "pairs_fixed"):
        save_draft(study=study, document=ALL)
    assert current_document(study).pairs is None
    assert study.items.count() == 3


STRENGTHS = {"alpha": 1.0, "beta": 0.4, "gamma": -0.4, "delta": -1.0}


def compared_study() -> models.Study:
    """Balanced pairs of 60 items, each chosen by six people by the strengths."""
    study = rating_study(n_items=60, systems=tuple(STRENGTHS), questions=())
    save_draft(study=study, document=BALANCED)
    freeze(study=study)
    rng = Random(1)
    people = [models.Annotator.objects.create(study=study, pseudonym=f"p{n}") for n in range(6)]
    passes = [
        models.Submission(item=item, annotator=person, raw="{}")
        for item, person in product(study.items.prefetch_related("candidates"), people)
    ]
    judgments = []
    question = study.questions.get()
    for each in models.Submission.objects.bulk_create(passes):
        left, right = each.item.candidates.all()
        chance = 1 / (1 + np.exp(STRENGTHS[right.system] - STRENGTHS[left.system]))
        is_left = rng.random() < chance
        judgments += [
            models.Judgment(
                submission=each, candidate=one, question=question, value=float(is_left == side)
            )
            for one, side in ((left, True), (right, False))
        ]
    models.Judgment.objects.bulk_create(judgments)
    return study


def test_strengths_are_recovered_from_balanced_pairs_by_imported_items():
    study = compared_study()
    question = study.questions.get()
    result = units.system_strengths(study, question=question)
    assert result.reason is None
    labels = result.labels.set_index("item")
    assert list(labels["label"].sort_values(ascending=False).index) == list(STRENGTHS)
    for name, strength in STRENGTHS.items():
        assert labels.loc[name, "ci_low"] < strength < labels.loc[name, "ci_high"]
    frame = frames.judgment_frame(study)
    assert set(frame["cluster"]) == {f"d{n}" for n in range(60)}
    assert set(units.wins(question, frame)["item"]) == set(frame["cluster"])
    [row] = agreement.study_agreement(study).questions
    assert row.question == "better"
