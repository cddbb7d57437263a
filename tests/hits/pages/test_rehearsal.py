import json
from collections import defaultdict
from dataclasses import replace
from io import BytesIO
from statistics import fmean

import pytest
from django.db import transaction
from django.urls import reverse
from PIL import Image

from annotation.flags import count_judgments_change
from annotation.models import Annotator, Candidate, Judgment, Picture, Study, Submission
from annotation.new_studies import copy_for_rehearsal
from annotation.protocols import documents, records
from annotation.protocols.versions import current_document, save_draft
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, REHEARSE, RESULTS, VALIDATION, jobs_of
from hits import exceptions, questions, rehearsals
from hits.crowd import replay, similarity, simulated
from hits.models import Assignment, Batch, Connection, Hit, Worker
from hits.rehearsal_report import make_report, rehearsal_report
from marketplace import clock
from marketplace.models import Hit as MarketplaceHit, QualificationType
from marketplace.qualifications.eligibility import visible_groups
from metrics.models import Score
from retrieval.exports.qrels import judgment_source, pairs_of
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import codes_on, refused
from tests.console.work import work_off
from tests.hits.test_answers import EVERY_KIND, W
from validation.analysis.human_results import ALL
from validation.documents.rated_systems import is_told_apart
from validation.result_kinds.validation import HumanResultsKind, StoredHumanResults
from work.exceptions import JobStopped
from work.execution import RunningJob, run_job

SYSTEMS = ("north", "south", "west")
TWICE = {"completion": {"assignments_per_item": 2}}
LINE = {"name": "fit", "kind": "line", **W, "low_label": "l", "high_label": "h"}
CHECKED = {"checks": [{"kind": "repeat", "share": 0.5}], "questions": [LINE]}


def study_of(document, n_items=4, **fields):
    study = rating_study(n_items=n_items, systems=SYSTEMS, questions=(), **fields)
    save_draft(study=study, document=documents.read_document(EVERY_KIND | TWICE | document))
    return study


def products(*, has_pictures=False, titles=("",)):
    """Pools of products without a reference; their titles share no words unless given."""
    study = alternatives_study()
    study.items.update(context="")
    for n, candidate in enumerate(Candidate.objects.filter(item__study=study)):
        candidate.text = titles[n % len(titles)]
        candidate.picture = picture_of(10 * n) if has_pictures else None
        candidate.save()
    return study


def picture_of(shade):
    image, buffer = Image.new("L", (32, 32), 255), BytesIO()
    image.paste(shade, (16, 0, 32, 8 + shade % 20))
    image.save(buffer, format="PNG")
    content = {"media_type": "image/png", "content": buffer.getvalue()}
    return Picture.objects.create(sha256=f"{shade:064}", **content)


def run_rehearsal(study, **options):
    job = rehearsals.request_rehearsal(study=study, actor=None, **options)
    assert run_job(job.pk) == "done", jobs_of(study).of_kind(REHEARSE).first().message
    return rehearsals.rehearsal_of(study)


def answer_all(study, pages, seed, **options):
    """Let three annotators answer every item, and return the mean of each system's values."""
    question, names, values = study.questions.get(), ["ann", "bob", "eve"], defaultdict(list)
    qualities = similarity.study_qualities(study, seed=seed, **options)
    source = rehearsals.answer_source(study, qualities, names, seed=seed, crew="careful")
    judgments = []
    for name in names:
        annotator = Annotator.objects.create(study=study, pseudonym=name)
        for item, page in pages:
            submission = Submission.objects.create(item=item, annotator=annotator, raw="{}")
            keys = {each.blind_key: each for each in item.candidates.all()}
            for row in source.answer(name, page)["judgments"]:
                about = {"submission": submission, "candidate": keys[row["candidate"]]}
                judgments.append(Judgment(question=question, value=row["value"], **about))
                values[about["candidate"].system].append(row["value"])
    Judgment.objects.bulk_create(judgments)
    count_judgments_change(study_ids=[study.pk])
    return {system: fmean(each) for system, each in values.items()}


def is_any_better(study):
    """Whether Results shows a significant difference between any two systems."""
    pairs = StoredHumanResults(study, HumanResultsKind().compute_now(study)).pairs["fit", ALL, ""]
    return any(is_told_apart(pair, one) for pair in pairs for one in (pair.a, pair.b))


@pytest.mark.slow
def test_a_planted_order_is_recovered_and_without_one_no_system_is_better(db):
    study = rating_study(n_items=20, systems=SYSTEMS, questions=("fit",))
    for n, candidate in enumerate(Candidate.objects.filter(item__study=study)):
        words = ["Reference", "of", "other", "words"][: 1 + n * 7 % 4]
        Candidate.objects.filter(pk=candidate.pk).update(text=" ".join(words))
    items = study.items.prefetch_related("candidates")
    pages = [(item, json.loads(replay.Page(questions.task_page(item)).task)) for item in items]
    planted, n_recovered, n_better = ["west", "north", "south"], 0, 0
    for seed in range(30):
        with transaction.atomic():
            means = answer_all(study, pages, seed % 20, planted=planted if seed >= 20 else ())
            n_better += seed <= 20 and is_any_better(study)
            n_recovered += seed >= 20 and sorted(means, key=means.get, reverse=True) == planted
            transaction.set_rollback(True)
    assert n_recovered >= 9
    assert 1 <= n_better <= 2  # that of the first planted one, and one of twenty by chance


@pytest.mark.parametrize(
    ("options", "basis"),
    [
        ({"titles": ("red boot", "red clog", "blue boot")}, similarity.TEXTS),
        ({"has_pictures": True}, similarity.PICTURES),
        ({}, similarity.RANDOM),
    ],
)
def test_products_without_a_reference_are_judged_by_texts_pictures_or_chance(options, basis, db):
    study = products(**options)
    qualities = similarity.study_qualities(study, seed=1)
    # So is the crowd of a batch.
    assert simulated.SimulatedAnswers(study, seed=1).qualities.basis == basis
    values = [value for (_item, key), value in qualities.values.items() if key]
    assert qualities.basis == basis
    assert 0 <= min(values) < 0.5 < max(values) <= 1


@pytest.mark.slow
@pytest.mark.usefixtures("funded_site")
def test_a_rehearsal_of_every_kind_fills_the_results_and_is_deleted(researcher, signed_in):
    study, rosa = study_of({}, owner=researcher), signed_in(researcher)
    rehearsal = run_rehearsal(study, crew="mixed", is_planted=True)
    report = rehearsal_report(rehearsal)
    assert (report.facts["n_submitted"], report.facts["n_planned"]) == (8, 8)
    assert report.facts["n_rows"] == Judgment.objects.of(rehearsal).count() > 0
    assert {"answered", "basis"} <= {each["code"] for each in report.record["findings"]}
    judged = set(Judgment.objects.of(rehearsal).values_list("question__name", flat=True))
    assert {"fit", "agree", "kind", "safe", "errors", "best", "ends", "order"} <= judged
    assert all(
        find_study_kind(name).is_stored(rehearsal) for name in (RESULTS, AGREEMENT, VALIDATION)
    )
    assert Score.objects.filter(run__study=rehearsal).exists()
    assert not Submission.objects.of(rehearsal).filter(is_simulated=False).exists()
    # Each annotator has an order of their own.
    orders = Submission.objects.of(rehearsal).values_list("item", "shown_order")
    assert len({(item, *order) for item, order in orders}) > rehearsal.items.count()
    assert set(MarketplaceHit.objects.values_list("status", flat=True)) == {"Disposed"}
    assert not QualificationType.objects.existing().exists()
    assert_apart(rehearsal, study, rosa)

    # One press deletes it.
    step = reverse("console:rehearsal", args=[study.slug])
    assert 'data-state="finished"' in rosa.get(step).content.decode()
    rosa.post(reverse("console:rehearsal-delete", args=[study.slug]))
    work_off()
    models = (Submission, Judgment, Batch, Hit, Assignment, Score)
    assert not any(model.objects.exists() for model in models)
    assert (Study.objects.get(), study.items.count()) == (study, 4)
    assert 'data-state="before"' in rosa.get(step).content.decode()


def assert_apart(rehearsal, study, rosa):
    assert not Submission.objects.of(study).exists()
    assert (rehearsal.team, rehearsal.owner) == (None, None)
    for address in (reverse("console:studies"), "/api/v1/studies/"):
        assert rehearsal.slug not in rosa.get(address).content.decode()
    assert rosa.get(f"/api/v1/studies/{rehearsal.slug}/").status_code == 404
    # Its pages are read by whoever may see the study, and lead back.
    for page in ("results", "agreement", "validation", "downloads", "study"):
        address = reverse(f"console:{page}", args=[rehearsal.slug])
        assert "rehearsal" in codes_on(rosa.get(address).content.decode())
    launch = rosa.get(reverse("console:launch", args=[rehearsal.slug]))
    assert launch.url == reverse("console:launch", args=[study.slug])
    rename = reverse("console:rename", args=[rehearsal.slug])
    assert rosa.post(rename, {"title": "Other"}).status_code == 403
    for page in ("results", "agreement"):
        text = rosa.get(reverse(f"console:{page}", args=[study.slug])).content.decode()
        assert reverse(f"console:{page}", args=[rehearsal.slug]) in text


@pytest.mark.slow
@pytest.mark.usefixtures("funded_site")
def test_a_rehearsal_of_products_gives_qrels_and_says_that_they_are_random():
    rehearsal = run_rehearsal(products())
    assert {pair.grade for pair in pairs_of(judgment_source(rehearsal))} == {0, 1}
    [basis] = [f for f in rehearsal_report(rehearsal).record["findings"] if f["code"] == "basis"]
    assert basis["basis"] == similarity.RANDOM


def stored_rehearsal(study):
    """A rehearsal as it is stored when it is finished, of items that nobody has answered."""
    document = replace(current_document(study), qualifications=records.Qualifications())
    keys = study.items.values_list("key", flat=True)
    slug = f"{study.slug}-rehearsal-000001"
    copy = copy_for_rehearsal(source=study, slug=slug, document=document, keys=list(keys))
    chosen = {"seed": 1, "crew": "careful", "planted": []}
    make_report(copy, similarity.study_qualities(copy, seed=1), chosen)
    return copy


def test_the_report_shows_long_pages_and_names_what_annotators_did_not_take(researcher, signed_in):
    study = study_of({}, owner=researcher)
    test = records.QualificationTest((records.GradedCase("C", scores={"fit": 1}),))
    people = records.Qualifications(tests=(test,), countries=("US",))
    save_draft(study=study, document=replace(current_document(study), qualifications=people))
    item = study.items.get(key="d1")
    item.candidates.update(text="word " * 400)
    copy = stored_rehearsal(study)
    findings = {one["code"]: one for one in rehearsal_report(copy).record["findings"]}
    assert findings["skipped"]["parts"] == ["tests"]
    long = findings["long_pages"]
    assert (long["items"], long["words"] >= 1200) == (["d1"], True)
    step = signed_in(researcher).get(reverse("console:rehearsal", args=[study.slug]))
    text = step.content.decode()
    assert {"skipped", "long_pages"} <= set(codes_on(text))
    assert f'href="{reverse("console:try-item", args=[study.slug, item.pk])}"' in text


class Killed(RunningJob):
    """A job whose process ends once some assignments were submitted."""

    def check(self):
        if self.job.phase == "assignments" and self.job.n_done >= 3:
            raise JobStopped


@pytest.mark.slow
@pytest.mark.usefixtures("funded_site")
def test_a_killed_rehearsal_continues_and_nothing_is_there_twice(make_worker):
    study = study_of(CHECKED)
    job = rehearsals.request_rehearsal(study=study, actor=None)
    assert rehearsals.request_rehearsal(study=study, actor=None) == job
    with pytest.raises(JobStopped):
        rehearsals.rehearse(Killed(job, ""), study)
    # Meanwhile its HITs are open, for its own annotators alone.
    assert MarketplaceHit.objects.filter(status="Assignable").exists()
    assert not visible_groups(make_worker("ann"), clock.now()).exists()
    assert not QualificationType.objects.requestable().exists()
    assert run_job(job.pk) == "done"
    rehearsal = rehearsals.rehearsal_of(study)
    takers = Assignment.objects.values_list("hit", "worker")
    assert len(takers) == len(set(takers)) == Submission.objects.of(rehearsal).count() == 8
    assert rehearsal_report(rehearsal).facts["n_checks"] == 4
    # Another one takes its place, by the same annotators at the same requester.
    again = run_rehearsal(study)
    assert not Study.objects.filter(pk=rehearsal.pk).exists()
    assert Worker.objects.count() == rehearsal_report(again).facts["n_annotators"]
    assert Connection.objects.count() == 1


def test_whoever_edits_a_study_chooses_and_starts_a_rehearsal(
    researcher, signed_in, colleague, settings
):
    study, rosa = study_of(CHECKED, n_items=130, owner=researcher), signed_in(researcher)
    assert rehearsals.rehearsed_size(study) == (120, 2)
    settings.MARKETPLACE_ENDPOINT_URL = "https://elsewhere.example/requester"
    with refused(exceptions.RehearsalUnfit, "no_marketplace"):
        rehearsals.request_rehearsal(study=study, actor=None)
    settings.MARKETPLACE_ENDPOINT_URL = f"{settings.SITE_URL}/requester"
    address = reverse("console:rehearsal", args=[study.slug])
    step = rosa.get(address).content.decode()
    assert all(f'name="{name}"' in step for name in ("crew", "planted"))
    assert address in rosa.get(reverse("console:launch", args=[study.slug])).content.decode()
    assert signed_in(colleague).post(address).status_code == 404
    rosa.post(address, {"crew": "careless", "planted": "on"})
    job = jobs_of(study).of_kind(REHEARSE).get()
    assert (job.arguments["crew"], job.arguments["planted"]) == ("careless", list(SYSTEMS))
    assert 'data-state="running"' in rosa.get(address).content.decode()
