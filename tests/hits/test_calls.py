import threading

import pytest

from hits import calls, endpoints, exceptions, models, publications
from tests.annotation.studies import rating_study
from tests.boto_clients import network_client
from tests.codes import refused_naming
from tests.hits import cutting_proxy as cuts, work
from tests.hits.cutting_proxy import cutting_proxy

N_ITEMS = 30


@pytest.fixture(autouse=True)
def four_at_once(settings):
    settings.MARKETPLACE_REQUESTS_AT_ONCE = 4


def test_answers_come_in_the_order_of_the_calls():
    assert list(calls.calls_at_once(lambda n: n * n, range(50))) == [(n, n * n) for n in range(50)]


def test_so_many_are_called_at_once_and_no_more():
    barrier, running, most = threading.Barrier(4), [], []

    def call(n):
        running.append(n)
        most.append(len(running))
        barrier.wait(timeout=30)
        running.remove(n)

    assert (len(list(calls.calls_at_once(call, range(20)))), max(most)) == (20, 4)


def test_after_an_error_nothing_more_is_called_and_what_was_answered_is_not_lost():
    called, answered = [], []

    def call(n):
        called.append(n)
        if n == 5:
            raise ValueError("five")
        return n

    answers = calls.calls_at_once(call, range(1000))
    with refused_naming(ValueError, "five"):
        answered.extend(n for n, _ in answers)
    assert max(called) < 50
    assert answered[:5] == [0, 1, 2, 3, 4]
    assert 5 not in answered


def test_whoever_looks_no_further_ends_the_calls():
    called = []
    answers = calls.calls_at_once(called.append, range(1000))
    next(answers)
    answers.close()
    assert len(called) < 50


@pytest.fixture
def lab(live_server, keys):
    with cutting_proxy(live_server.url) as proxy:
        key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])
        yield proxy, endpoints.connect(key=key, endpoint_url=f"{proxy.url}/requester")


@pytest.mark.slow
def test_hits_published_at_once_are_published_once_though_answers_are_cut(lab, live_server, keys):
    proxy, client = lab
    proxy.cut("CreateHITWithHITType", cuts.half_a_body, 2, 9, 11)
    proxy.cut("CreateHITWithHITType", cuts.a_cut_line, 5, 20)
    batch = work.batch_of(rating_study(n_items=N_ITEMS))
    assert publications.publish_batch(batch=batch, client=client).n_hits == N_ITEMS
    there = {hit["HITId"]: hit["RequesterAnnotation"] for hit in work.hits_there(client)}
    ours = models.Hit.objects.of(batch).select_related("batch")
    assert there == {hit.hit_id: hit.requester_annotation for hit in ours}
    assert work.balance_of(network_client(f"{live_server.url}/requester", keys)) == ("7.00", "3.00")


def test_what_was_published_before_the_money_ran_out_is_written_down(lab):
    _proxy, client = lab
    batch = work.batch_of(rating_study(n_items=N_ITEMS), reward_usd="1.00")
    with pytest.raises(exceptions.MarketplaceRefused) as error:
        publications.publish_batch(batch=batch, client=client)
    assert error.value.has_code("InsufficientFunds")
    there = {hit["HITId"] for hit in work.hits_there(client)}
    assert len(there) == 10
    assert there == set(models.Hit.objects.of(batch).published().values_list("hit_id", flat=True))
