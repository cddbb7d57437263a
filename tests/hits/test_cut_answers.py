from itertools import cycle

import pytest
from django.utils import timezone

from annotation.models import Submission
from hits import collect, costs, decisions, endpoints, exceptions, models, publications
from tests.annotation.studies import rating_study
from tests.codes import refused
from tests.hits import cutting_proxy as cuts, work
from tests.hits.cutting_proxy import cutting_proxy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
N_ITEMS = 8
LIST = "ListAssignmentsForHIT"
# As on Mechanical Turk, a page with anything on it is followed by another.
CALLS_A_HIT = 2
EVERY_CUT = [cuts.half_a_body, cuts.no_body, cuts.no_keys, cuts.a_list]
EVERY_CUT += [cuts.half_a_character, cuts.a_cut_line]


@pytest.fixture(autouse=True)
def short_delays(monkeypatch):
    monkeypatch.setattr(endpoints, "LONGEST_DELAY_SECONDS", 0.01)


@pytest.fixture
def study(db):
    return rating_study(n_items=N_ITEMS)


@pytest.fixture
def proxy(live_server):
    with cutting_proxy(live_server.url) as proxy:
        yield proxy


@pytest.fixture
def lab(proxy, keys):
    key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])
    return endpoints.connect(key=key, endpoint_url=f"{proxy.url}/requester")


@pytest.fixture
def batch_with_work(study, client, ann):
    batch = work.published_batch(study, client)
    for hit in models.Hit.objects.of(batch):
        work.hand_in(ann, hit, {"alpha": 10, "beta": 20})
    return batch


@pytest.mark.parametrize("n_before", range(3))
def test_a_study_is_approved_once_whatever_is_cut(study, proxy, lab, client, ann, n_before):
    """Each way to cut is used in turn, beginning with another in each story."""
    ways = cycle(EVERY_CUT[2 * n_before :] + EVERY_CUT[: 2 * n_before])

    def cut(operation, *numbers):
        for number in numbers:
            proxy.cut(operation, next(ways), number)

    batch = work.batch_of(study)
    cut("GetAccountBalance", 1)
    cut("CreateHITType", 1, 2)
    cut("CreateHITWithHITType", 1, 4, 5)
    costs.require_funds(cost=costs.estimate(batch), client=lab)
    assert (publications.publish_batch(batch=batch, client=lab).n_hits, proxy.n_cut) == (N_ITEMS, 6)
    there = {hit["HITId"] for hit in work.hits_there(client)}
    assert there == set(models.Hit.objects.of(batch).values_list("hit_id", flat=True))
    assert work.balance_of(client) == ("9.20", "0.80")
    for hit in models.Hit.objects.of(batch):
        work.hand_in(ann, hit, {"alpha": 10, "beta": 20})
    cut(LIST, 1, 3, 4, 8)
    assert collect.collect_batch(batch=batch, client=lab).n_new == N_ITEMS
    six = models.Assignment.objects.filter(hit__item__position__lt=6)
    decisions.decide(assignments=six, decision=models.Assignment.Decision.APPROVE)
    cut("ApproveAssignment", 1, 5)
    assert decisions.send_decisions(batch=batch, client=lab).n_approved == 6
    assert work.balance_of(client) == ("9.20", "0.20")
    assert Submission.objects.filter(status="approved").count() == 6
    # What is done is not asked about.
    before = proxy.calls[LIST]
    collect.collect_batch(batch=batch, client=lab)
    assert proxy.calls[LIST] - before == CALLS_A_HIT * 2


def test_a_line_that_cuts_everything_is_given_up_in_words(batch_with_work, proxy, lab):
    proxy.cut("GetHIT", cuts.half_a_body, 1)
    with pytest.raises(lab.exceptions.RequestError) as error:
        lab.get_hit(HITId="3NOSUCHHIT")
    assert error.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.HITDoesNotExist"
    assert proxy.calls["GetHIT"] == 2
    proxy.cut(LIST, cuts.half_a_body, *range(1, 100))
    with refused(exceptions.MarketplaceUnreachable, "cut_short") as unreachable:
        collect.collect_batch(batch=batch_with_work, client=lab)
    assert f"{proxy.url}/requester" in str(unreachable.value)
    assert proxy.calls[LIST] == endpoints.MOST_ATTEMPTS


@pytest.mark.parametrize("is_pressed_now", [False, True])
def test_collecting_goes_on_where_it_stopped(batch_with_work, proxy, lab, is_pressed_now):
    """Unless all is asked for now."""
    proxy.cut(LIST, cuts.no_body, *range(CALLS_A_HIT * 5 + 1, 100))
    with pytest.raises(exceptions.MarketplaceUnreachable):
        collect.collect_batch(batch=batch_with_work, client=lab)
    assert Submission.objects.count() == 5
    proxy.cuts.clear()
    before = proxy.calls[LIST]
    since = {"since": timezone.now()} if is_pressed_now else {}
    result = collect.collect_batch(batch=batch_with_work, client=lab, **since)
    n_hits, n_skipped = (N_ITEMS, 0) if is_pressed_now else (3, 5)
    assert (result.n_new, result.n_hits, result.n_skipped) == (3, n_hits, n_skipped)
    assert proxy.calls[LIST] - before == CALLS_A_HIT * n_hits
    assert collect.collect_batch(batch=batch_with_work, client=lab).n_hits == N_ITEMS


def test_what_was_looked_at_is_written_down_on_the_way(batch_with_work, lab, monkeypatch):
    """Who is killed every few seconds would look at the same HITs for ever. What was looked at long
    ago is looked at again, after the rest."""
    monkeypatch.setattr(collect, "UNWRITTEN_SECONDS", 0.0)
    first, *rest = models.Hit.objects.of(batch_with_work)
    long_ago = batch_with_work.publishing_started_at - 2 * collect.RESUMED_WITHIN
    models.Hit.objects.filter(pk=first.pk).update(collected_at=long_ago)
    written, order = [], []

    def progress(hits, total):
        for hit, answers in hits:
            order.append(hit)
            written.append(models.Hit.objects.filter(collected_at__gt=long_ago).count())
            yield hit, answers

    collect.collect_batch(batch=batch_with_work, client=lab, progress=progress)
    assert (order, written) == ([*rest, first], list(range(N_ITEMS)))
