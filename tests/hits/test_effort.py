"""Scripts that claim more time than passed, or submit many HITs at once: flagged, and not approved
by a rule. Fast people are neither."""

import json

import pytest

from annotation.flags import store_evidence
from annotation.models import AnnotatorFlag, Candidate, SubmissionEvidence
from hits import answers, collect, drafts
from hits.models import Assignment, Hit
from hits.pages.rules import draft_by
from marketplace.hits.assignments import accept_hit, answer_document, submit_answer
from marketplace.models import Hit as MarketplaceHit
from tests.annotation import importing, studies
from tests.hits.work import answer_to, published_batch
from tests.marketplace.conftest import let_time_pass

N_HITS = 10
READING = {"alpha": "The train leaves at nine. " * 4, "beta": "It does not go today. " * 4}


@pytest.fixture
def batch(client):
    study = studies.rating_study(n_items=N_HITS)
    for candidate in Candidate.objects.filter(item__study=study):
        candidate.text = READING[candidate.key]
        candidate.save()
    return published_batch(study, client, max_assignments=3)


def work(worker, batch, *, seconds, wait=0, at_once=False, n=N_HITS, secret="", **fields):
    """Do `n` HITs in turn, each in so many seconds; or accept all `at_once`, wait, and submit each
    after so many seconds. Who has the `secret` proves that an answer is simulated."""
    hits = list(Hit.objects.of(batch).order_by("pk"))[:n]
    if at_once:
        accepted = [accept(worker, hit) for hit in hits]
        let_time_pass(worker, wait)
    for number, hit in enumerate(hits):
        assignment = accepted[number] if at_once else accept(worker, hit)
        let_time_pass(worker, seconds)
        values = {"alpha": 20 + number, "beta": 70 - 2 * number}
        mark = answers.simulation_mark(assignment.public_id, secret=secret) if secret else ""
        answer = json.dumps(answer_to(hit, values, **fields, mark=mark))
        document = answer_document([("answer", [answer])])
        submit_answer(public_id=assignment.public_id, answer=document, is_checked=False)


def accept(worker, hit):
    return accept_hit(worker=worker, hit=MarketplaceHit.objects.get(public_id=hit.hit_id))


def measure(batch, client):
    assert collect.collect_batch(batch=batch, client=client).n_unreadable == 0
    store_evidence(batch.study)


def contradictory(batch):
    rows = SubmissionEvidence.objects.filter(submission__item__study=batch.study)
    return rows.filter(is_contradictory=True).count()


def annotator_flags():
    return set(AnnotatorFlag.objects.values_list("name", flat=True))


def taken(batch):
    return drafts.unflagged_assignments(batch.study, hours=-1)


def approved_by_command(batch):
    text = importing.command_output("approve_study", batch.study.slug, "--dry-run", "--json")
    [outcome] = json.loads(text)["batches"]
    return outcome["would_approve"]


def test_a_script_that_claims_95_seconds_for_one_and_a_half_is_flagged(batch, client, ann):
    work(ann, batch, seconds=1.5, active_seconds=95)
    measure(batch, client)
    assert contradictory(batch) == N_HITS
    assert (annotator_flags(), taken(batch)) == ({"contradictory_times", "too_fast"}, [])
    assert approved_by_command(batch) == 0
    # What the server measured, which the page's claim does not change.
    assert max(SubmissionEvidence.objects.values_list("seconds", flat=True)) < 10


def test_a_script_that_waits_with_ten_hits_and_submits_all_is_flagged(batch, client, ann):
    work(ann, batch, at_once=True, wait=95, seconds=1, active_seconds=95)
    measure(batch, client)
    assert contradictory(batch) == N_HITS - 1  # the first may have taken the 95 seconds
    assert (annotator_flags(), taken(batch)) == ({"contradictory_times", "too_fast"}, [])
    assert approved_by_command(batch) == 1


def test_contradictory_times_do_not_explain_other_fast_work(batch, client, ann, bob):
    """Bob reports the true second of each page; the only other annotator is a script, too."""
    work(ann, batch, seconds=1.5, active_seconds=95)
    work(bob, batch, seconds=1.5, active_seconds=1)
    measure(batch, client)
    flags = set(AnnotatorFlag.objects.values_list("annotator__pseudonym", "name"))
    assert len({who for who, _ in flags}) == 2
    assert ({name for _, name in flags}, taken(batch)) == ({"contradictory_times", "too_fast"}, [])


def late_judgments(batch):
    rows = answer_to(Hit.objects.of(batch).order_by("pk")[0], {"alpha": 1, "beta": 2})["judgments"]
    return {"judgments": [row | {"seconds": 40} for row in rows]}


@pytest.mark.parametrize(
    "claims",
    [
        lambda batch: {"events": [[40.0, "input"]]},
        late_judgments,
        lambda batch: {"simulated": True},
        lambda batch: {"simulated": True, "secret": "guessed"},
    ],
)
def test_other_claims_of_an_answer_contradict_too(batch, client, ann, claims):
    """Times of events and of single judgments, and that no person answered."""
    work(ann, batch, seconds=1.5, active_seconds=1, n=1, **claims(batch))
    measure(batch, client)
    assert (contradictory(batch), taken(batch)) == (1, [])


def test_fast_people_and_queues_of_hits_have_no_flag(batch, client, ann, bob):
    """Ann reads at 300 words per minute; Bob accepts all ten first and does them in turn."""
    events = [[2.0, "input"], [8.0, "seen", 2, 2]]
    work(ann, batch, seconds=9, active_seconds=8.5, events=events)
    work(bob, batch, at_once=True, wait=1, seconds=20, active_seconds=19, events=events)
    measure(batch, client)
    assert (contradictory(batch), annotator_flags()) == (0, set())
    assert (len(taken(batch)), approved_by_command(batch)) == (2 * N_HITS, 2 * N_HITS)


def test_the_crowd_of_this_site_is_exempt_by_its_mark(batch, client, ann, settings):
    work(ann, batch, seconds=0.2, active_seconds=95, simulated=True, secret=settings.SECRET_KEY)
    measure(batch, client)
    assert (contradictory(batch), annotator_flags()) == (0, set())
    assert len(taken(batch)) == N_HITS
    assert set(SubmissionEvidence.objects.values_list("seconds", flat=True)) == {95}


def test_a_rule_rejects_only_who_was_fast(batch, client, ann, bob, make_worker):
    """And not who submits pages together that were filled in before."""
    work(ann, batch, seconds=60, active_seconds=50)
    work(bob, batch, at_once=True, wait=600, seconds=1, active_seconds=50, n=4)
    work(make_worker("eve"), batch, seconds=1.5, active_seconds=95, n=4)
    measure(batch, client)
    rejected = drafts.fast_assignments(batch.study, divisor=3)
    assert (len(rejected), len({one.worker_id for one in rejected})) == (4, 1)


def test_a_rule_takes_only_what_it_still_takes(batch, client, ann, django_user_model):
    """Whatever a program lists: the preview that it read may be old, or of another's making."""
    work(ann, batch, seconds=1.5, active_seconds=95)
    measure(batch, client)
    keys = list(Assignment.objects.values_list("pk", flat=True))
    facts = {"reviewer": django_user_model.objects.create_user("rosa"), "values": {"hours": -1}}
    assert draft_by("approve-unflagged", study=batch.study, keys=keys, **facts) == []
