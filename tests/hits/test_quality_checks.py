"""Quality checks from the protocol to flags: placed, answered, scored, and nowhere else."""

import json
from dataclasses import replace

import pytest

from annotation.evidence_versions import store_evidence
from annotation.frames import candidate_frame, judgment_frame
from annotation.models import AnnotatorFlag, CheckAnswer, PlacedCheck, SubmissionEvidence
from annotation.protocols.check_faults import source_faults
from annotation.protocols.documents import plain_document
from annotation.protocols.records import (
    Check,
    CheckCase,
    Order,
    ProtocolDocument,
    ProtocolQuestion,
)
from annotation.protocols.validation import document_faults
from annotation.protocols.versions import save_draft
from hits.checked_pages import checks_on
from hits.collect import collect_batch
from hits.models import Hit
from hits.questions import task_page
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import codes_of
from tests.hits.work import batch_of, published_batch
from tests.marketplace.conftest import submit

LINE = ProtocolQuestion("appropriateness", "line", "How good?", low_label="bad", high_label="good")
GOLD = Check("gold", share=0.5, cases=(CheckCase(candidate="A fine answer.", value=90),))
CHECKS = (
    GOLD,
    Check("repeat", share=0.5),
    Check("degraded", share=0.5, holds_work=True),
    Check("instructed", share=0.5, cases=(CheckCase(candidate="Choose 10 here.", value=10),)),
)


def document(*checks: Check, **fields) -> ProtocolDocument:
    return ProtocolDocument(questions=(LINE,), title="Rate", checks=checks, **fields)


def checked_study(*checks: Check, n_items: int = 4, **fields):
    study = rating_study(n_items=n_items)
    # Long enough for a stretch of words to be replaced.
    for item in study.items.all():
        for candidate in item.candidates.all():
            candidate.text = f"{candidate.key} says a few words about number {item.key} here"
            candidate.save()
    save_draft(study=study, document=document(*checks, **fields))
    return study


def answer(hit: Hit, value_of) -> str:
    """The answer of a page to a worker who gives each of its candidates this value."""
    shown = [*hit.item.candidates.all(), *checks_on(hit)]
    rows = [
        {"candidate": each.blind_key, "question": LINE.name, "value": value_of(each), "seconds": 2}
        for each in shown
    ]
    return json.dumps(
        {
            "version": 1,
            "item": str(hit.item.pk),
            "order": [each.blind_key for each in shown],
            "judgments": rows,
            "justification": "",
            "comment": "",
            "active_seconds": 60,
            "pasted": False,
        }
    )


def careful(each) -> float:
    if isinstance(each, PlacedCheck):
        known = {"repeat": 60, "degraded": 15}
        return known.get(each.kind, each.expected)
    return 60


def placed_on(batch):
    rows = PlacedCheck.objects.filter(protocol=batch.protocol)
    return sorted(rows.values_list("item__key", "number", "text", "expected", "compared__key"))


def test_checks_are_placed_on_their_share_of_the_pages_and_stay_there(client):
    batch = published_batch(checked_study(*CHECKS, n_items=10), client)
    placed = placed_on(batch)

    assert [sum(row[1] == number for row in placed) for number in range(4)] == [5, 5, 5, 5]
    assert max([row[0] for row in placed].count(f"d{n}") for n in range(10)) == 2  # spread
    for hit in Hit.objects.of(batch):
        page = task_page(hit.item, batch.document, checks_on(hit))
        assert all(check.blind_key in page and check.text in page for check in checks_on(hit))
        assert not [kind for kind in ("gold", "degraded", "instructed") if kind in page]
    again = published_batch(hit.item.study, client, round=2)
    assert placed_on(again) == placed  # the same version, the same pages


@pytest.mark.django_db
def test_the_same_seed_draws_the_same_checks_and_another_seed_others():
    def keys(slug, seed):
        study = rating_study(slug, n_items=30)
        save_draft(study=study, document=document(GOLD, order=Order(seed=seed)))
        return [row[0] for row in placed_on(batch_of(study))]

    assert keys("one", 1) == keys("two", 1) != keys("three", 2)


def test_answers_to_checks_are_scored_and_are_no_judgments(client, ann, bob):
    study = checked_study(*CHECKS)
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
        submit(bob, hit.hit_id, answer=answer(hit, lambda each: 50))
    result = collect_batch(batch=batch, client=client)

    assert result.n_unreadable == 0
    frame = judgment_frame(study)
    assert len(frame) == 2 * 4 * 2  # workers, items, systems: none of the checks
    assert set(frame["candidate"]) == {"alpha", "beta"} == set(candidate_frame(study)["candidate"])
    answers = CheckAnswer.objects.values_list("placed__kind", "value", "is_failed")
    assert len(answers) == 2 * 8
    assert {kind for kind, value, failed in answers if failed} == {"gold", "degraded", "instructed"}
    assert all(failed == (value == 50) for kind, value, failed in answers if kind != "repeat")

    store_evidence(study)
    rows = SubmissionEvidence.objects.filter(submission__item__study=study)
    failing = rows.filter(has_failed_check=True)
    assert failing.exists()
    assert not failing.filter(is_flagged=False).exists()
    assert {row.submission_id for row in rows.filter(is_held=True)} == set(
        CheckAnswer.objects.filter(placed__kind="degraded", is_failed=True).values_list(
            "submission", flat=True
        )
    )


def test_an_annotator_who_fails_checks_is_flagged_and_careful_ones_are_not(client, ann, bob):
    checks = tuple(replace(check, share=1.0) for check in CHECKS)
    study = checked_study(*checks, n_items=5, holding_flags=("failed_checks",))
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
        submit(bob, hit.hit_id, answer=answer(hit, lambda each: 50))
    collect_batch(batch=batch, client=client)
    store_evidence(study)

    [flag] = AnnotatorFlag.objects.filter(name="failed_checks")
    assert (flag.n, flag.n_hits) == (20, 15)
    assert flag.p_value < 0.002
    held = SubmissionEvidence.objects.filter(is_held=True)
    assert {row.submission.annotator_id for row in held} == {flag.annotator_id}
    assert not SubmissionEvidence.objects.exclude(submission__annotator=flag.annotator).filter(
        is_flagged=True, has_failed_check=True
    )


def test_what_a_check_cannot_be_is_refused():
    def codes(*checks, questions=(LINE,)):
        content = replace(document(*checks), questions=questions)
        return codes_of(document_faults(plain_document(content)))

    assert codes(GOLD) == []
    assert codes(Check("gold")) == ["missing"]
    assert codes(replace(GOLD, kind="repeat")) == ["needless_cases"]
    assert "not_ticked" in codes(replace(GOLD, kind="known_other"))
    wrong = Check("instructed", cases=(CheckCase(candidate="x", value=101), CheckCase(value=5)))
    assert codes(wrong) == ["off_scale", "shows_nothing"]
    best = ProtocolQuestion("best", "preference", "Which is best?")
    assert codes(GOLD, questions=(LINE, best)) == ["comparison"]


@pytest.mark.django_db
def test_known_pictures_are_placed_in_another_pool():
    study = alternatives_study()
    question = ProtocolQuestion("acceptable", "selection", "Which?")
    other = CheckCase(item="boot", source_item="gown", source_candidate="coat")
    check = Check("known_other", share=1.0, cases=(other,))
    draft = ProtocolDocument(questions=(question,), title="Tick", checks=(check,))
    unknown = replace(check, cases=(replace(other, source_candidate="hat"),))
    [fault] = source_faults(study, replace(draft, checks=(unknown,)))
    assert (fault.code, "'hat'" in fault.message) == ("unknown_candidate", True)

    save_draft(study=study, document=draft)
    [placed] = PlacedCheck.objects.filter(protocol=batch_of(study).protocol)
    assert (placed.item.key, placed.text, placed.expected) == ("boot", "coat on gown", 0)
