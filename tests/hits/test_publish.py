from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Candidate, Item, Study
from hits import calls, connections, exceptions, plans, readiness
from hits.models import Batch, Connection, Hit
from hits.publications import publish_batch
from hits.wages import duration_of, estimated_duration, stated_hourly, study_texts, wage_of
from marketplace.hits.wages import wages_by_type
from marketplace.models import Hit as MarketplaceHit, HitType, Requester
from marketplace.money.transfers import deposit
from tests.annotation.studies import rating_study
from tests.codes import refused
from tests.hits.samples import picture
from tests.hits.wire import answer_lost, refusal, unreachable
from tests.hits.work import balance_of, batch_of, hit_on, hits_there, published_batch, tables

CREATE = "CreateHITWithHITType"


def test_pages_state_how_long_they_take(study, client, monkeypatch):
    batch = published_batch(study, client)
    document, texts = batch.document, study_texts(study)
    there = HitType.objects.get(public_id=batch.hit_type_id)
    assert there.estimated_seconds == round(estimated_duration(texts, document).typical_seconds)
    # Annotators and the batch's page have one estimate of the hourly pay.
    shown = wages_by_type([there])[there.pk].usd_per_hour
    assert shown == wage_of(batch.reward_usd, duration_of(study)).typical_usd
    stated = replace(document.time, estimate_seconds=there.estimated_seconds)
    monkeypatch.setattr(Batch, "document", replace(document, time=stated))
    assert stated_hourly(batch) == shown


def hit_ids(batch: Batch) -> list[str]:
    return list(Hit.objects.of(batch).values_list("hit_id", flat=True))


def assert_each_once(batch: Batch, client) -> None:
    there = {hit["HITId"]: hit["RequesterAnnotation"] for hit in hits_there(client)}
    ours = {hit.hit_id: hit.requester_annotation for hit in Hit.objects.of(batch)}
    assert there == ours
    assert len(ours) == Hit.objects.of(batch).count() == batch.study.items.count()


def long_ago(batch: Batch, **ago: float) -> None:
    then = timezone.now() - timedelta(**ago)
    Batch.objects.filter(pk=batch.pk).update(publishing_started_at=then)
    batch.refresh_from_db()


def test_every_item_becomes_a_hit_with_the_batchs_settings_once(study, client):
    terms = {"reward_usd": "0.12", "max_assignments": 3, "assignment_duration_seconds": 600}
    terms |= {"auto_approval_delay_seconds": 7200, "lifetime_seconds": 86_400}
    batch = published_batch(study, client, keywords="dialogue, rating", **terms)
    before = tables()
    assert publish_batch(batch=batch, client=client).n_hits == 0
    assert tables() == before
    assert_each_once(batch, client)
    for hit in hits_there(client):
        assert hit["HITTypeId"] == batch.hit_type_id
        assert (hit["Title"], hit["Description"]) == ("Judge ratings", "Read and judge.")
        assert (hit["Reward"], hit["MaxAssignments"]) == ("0.12", 3)
        seconds = (hit["AssignmentDurationInSeconds"], hit["AutoApprovalDelayInSeconds"])
        assert seconds == (600, 7200)
        assert hit["Expiration"] - hit["CreationTime"] == timedelta(days=1)
        assert hit["Keywords"] == "dialogue, rating"
    question = client.get_hit(HITId=hit_on(batch, "d1").hit_id)["HIT"]["Question"]
    assert all(text in question for text in ("Context 1", "alpha on d1"))
    assert "Context 0" not in question
    # Another round at another reward has a HIT type and HITs of its own.
    other = batch_of(study, reward_usd="0.11", round=2)
    assert (calls.match_published(batch=other, client=client), hit_ids(other)) == (0, ["", "", ""])
    publish_batch(batch=other, client=client)
    assert other.hit_type_id != batch.hit_type_id


@pytest.mark.parametrize(
    "fault",
    [unreachable, answer_lost, refusal("ThrottlingException"), refusal("AccessDeniedException")],
)
def test_a_stopped_publication_goes_on_where_it_was(study, wire, client, fault):
    batch = batch_of(study)
    wire.fail(CREATE, fault, at=2)
    with pytest.raises((exceptions.MarketplaceUnreachable, exceptions.MarketplaceRefused)):
        publish_batch(batch=batch, client=client)
    before, there = hit_ids(batch), {hit["HITId"] for hit in hits_there(client)}
    assert [bool(hit_id) for hit_id in before] == [True, False, False]
    assert len(there) == (2 if fault is answer_lost else 1)
    assert publish_batch(batch=batch, client=client).n_hits == 2
    assert hit_ids(batch)[0] == before[0]
    assert there <= set(hit_ids(batch))
    assert_each_once(batch, client)


def test_a_hit_has_one_token_and_one_annotation_for_good(study):
    batch, other = batch_of(study), batch_of(study, round=2)
    hits = [*Hit.objects.of(batch), *Hit.objects.of(other)]
    tokens = [hit.unique_request_token for hit in hits]
    assert len(set(tokens)) == 6
    assert all(len(token) <= 64 for token in tokens)
    assert tokens == [Hit.objects.get(pk=hit.pk).unique_request_token for hit in hits]
    assert len({hit.requester_annotation for hit in hits}) == 6
    hits[0].item_id = 2**63 - 1
    assert len(hits[0].requester_annotation) <= 255


def test_after_the_tokens_day_a_lost_hit_is_found_by_its_annotation(study, wire, client):
    batch = batch_of(study)
    wire.fail(CREATE, answer_lost, at=2)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    hit_id = hits_there(client)[0]["HITId"]
    # A second attempt does not prolong the day.
    long_ago(batch, hours=15)
    wire.fail(CREATE, unreachable, at=1)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    assert timezone.now() - batch.publishing_started_at > timedelta(hours=14)
    long_ago(batch, days=2)
    MarketplaceHit.objects.update(unique_request_token=None)
    assert publish_batch(batch=batch, client=client).n_hits == 1
    assert hit_ids(batch)[1] == hit_id
    assert_each_once(batch, client)
    assert timezone.now() - batch.publishing_started_at < timedelta(hours=1)


@pytest.mark.parametrize(("hours", "is_looked_up"), [(19.9, False), (20.1, True), (23.9, True)])
def test_tokens_are_relied_on_for_twenty_hours_only(study, wire, client, hours, is_looked_up):
    """A day less four hours: what one attempt may take from its first HIT to its last."""
    batch = batch_of(study)
    wire.fail(CREATE, unreachable, at=2)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        publish_batch(batch=batch, client=client)
    long_ago(batch, hours=hours)
    publish_batch(batch=batch, client=client)
    assert bool(wire.calls["ListHITs"]) == is_looked_up
    assert_each_once(batch, client)


@pytest.mark.slow
def test_a_lost_hit_is_found_on_a_later_page_too(client):
    batch = published_batch(rating_study(n_items=103, systems=["alpha"]), client, reward_usd="0.01")
    oldest = Hit.objects.of(batch).order_by("pk")[:2]
    before = hit_ids(batch)
    Hit.objects.filter(pk__in=[hit.pk for hit in oldest]).update(hit_id="")
    assert (calls.match_published(batch=batch, client=client), hit_ids(batch)) == (2, before)


def test_where_money_runs_out_the_rest_waits_for_more(study, client):
    batch = batch_of(study, reward_usd="2.00", max_assignments=2)
    with pytest.raises(exceptions.MarketplaceRefused) as error:
        publish_batch(batch=batch, client=client)
    assert error.value.has_code("InsufficientFunds")
    assert [bool(hit_id) for hit_id in hit_ids(batch)] == [True, True, False]
    assert balance_of(client) == ("2.00", "8.00")
    deposit(requester=Requester.objects.get(), amount_usd=Decimal(2))
    assert publish_batch(batch=batch, client=client).n_hits == 1
    assert balance_of(client) == ("0.00", "12.00")
    assert_each_once(batch, client)


def test_settings_no_marketplace_takes_are_refused_before_anything_is_kept(study):
    """Rewards that are no amounts in cents have a code of their own."""
    for name, value, shown in (
        ("reward_usd", "-0.10", "-0.10"),
        ("reward_usd", "0.105", "0.105"),
        ("reward_usd", "NaN", ""),
        ("reward_usd", "Infinity", ""),
        ("reward_usd", "1000000", "reward_usd: "),
        ("max_assignments", 0, "1"),
        ("round", 0, "1"),
        ("assignment_duration_seconds", 29, "30"),
        ("lifetime_seconds", 366 * 86_400, "31536000"),
        ("auto_approval_delay_seconds", 31 * 86_400, "2592000"),
        ("keywords", "k" * 1001, "1000"),
        ("title", "", "title: "),
        ("title", "x" * 2001, "title: "),
        ("description", "", "description: "),
        ("description", "x" * 2001, "description: "),
    ):
        is_amount = name == "reward_usd" and value != "1000000"
        settings = {"reward_usd": "0.10", "title": "Rate", "description": "Rate.", name: value}
        settings["reward_usd"] = Decimal(settings["reward_usd"])
        with refused(exceptions.BatchUnfit, "reward" if is_amount else "settings") as error:
            plans.draft_batch(study=study, **settings)
        assert all(text in str(error.value) for text in (shown, "" if is_amount else f"{name}: "))
        assert not Batch.objects.exists()


def test_a_draft_of_what_is_planned_already_is_that_batch(study):
    first = batch_of(study)
    assert batch_of(study) == first
    with refused(exceptions.BatchUnfit, "round_exists") as error:
        batch_of(study, reward_usd="0.20")
    assert "0.10" in str(error.value)
    facts = {"title": "T", "description": "D", "reward_usd": Decimal(1)}
    with pytest.raises(IntegrityError), transaction.atomic():
        Batch.objects.create(study=study, connection=connections.site_connection(), **facts)
    elsewhere = Connection.objects.create(name="elsewhere", marketplace="other.example.org")
    assert batch_of(study, connection=elsewhere) != first


def test_a_publisher_that_was_killed_is_waited_for_only_so_long(study, client, monkeypatch):
    batch = batch_of(study)
    assert calls.Publisher(batch).claim()
    assert not calls.Publisher(batch).claim()
    Batch.objects.update(publisher_seen_at=timezone.now() - calls.SILENT_FOR - timedelta(seconds=1))
    monkeypatch.setattr("hits.calls.RENEWED_EVERY", timedelta(0))
    seen_at = []

    def progress(hits, total):
        for hit in hits:
            seen_at.append(Batch.objects.get().publisher_seen_at)
            yield hit

    assert publish_batch(batch=batch, client=client, progress=progress).n_hits == 3
    assert seen_at == sorted(set(seen_at))
    assert len(seen_at) == 3


def test_an_item_that_makes_no_page_stops_the_batch_before_its_first_hit(study):
    empty = Study.objects.create(slug="empty", title="Empty", kind=Study.Kind.RATING)
    with refused(exceptions.BatchUnfit, "no_items"):
        batch_of(empty)
    item = study.items.get(key="d2")
    Item.objects.filter(pk=item.pk).update(context="long " * 20_000)
    with pytest.raises(exceptions.QuestionTooLarge) as error:
        batch_of(study)
    assert "d2" in str(error.value)
    Item.objects.filter(pk=item.pk).update(context="")
    bare = Item.objects.create(study=study, key="bare", position=9)
    with refused(exceptions.BatchUnfit, "no_candidates") as error:
        batch_of(study)
    assert "bare" in str(error.value)
    bare.delete()
    study.questions.all().delete()
    with refused(exceptions.BatchUnfit, "no_question"):
        batch_of(study)
    assert not Batch.objects.exists()


def picture_queries(queries: CaptureQueriesContext) -> int:
    return sum('FROM "annotation_picture"' in query["sql"] for query in queries)


@pytest.mark.slow
def test_pages_and_pictures_are_in_memory_a_chunk_at_a_time(client):
    study = rating_study(n_items=2 * readiness.CHUNK + 1, systems=["alpha"])
    for number, candidate in enumerate(Candidate.objects.filter(item__study=study)):
        candidate.picture = picture(number % 5)
        candidate.save()
    with CaptureQueriesContext(connection) as of_draft:
        batch = batch_of(study, reward_usd="0.01")
    assert picture_queries(of_draft) == 3
    with CaptureQueriesContext(connection) as of_first:
        publish_batch(batch=batch, client=client, progress=lambda hits, total: [next(iter(hits))])
    assert picture_queries(of_first) == 1
    with CaptureQueriesContext(connection) as of_all:
        publish_batch(batch=batch, client=client)
    assert picture_queries(of_all) == 2
    assert_each_once(batch, client)
