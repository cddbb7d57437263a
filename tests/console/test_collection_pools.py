"""Pools on a collection's pages: what is asked for that cannot be, and what is taken away."""

import re

import pytest

from accounts.models import AuditEntry
from annotation.models import Study
from console.collections.pool_forms import LISTED
from hits.models import Batch, Connection
from retrieval.collections import link_studies
from retrieval.models import CollectionVersion, FileFit, PoolFinding
from tests.annotation.studies import rate, rating_study
from tests.codes import codes_of, codes_on, field_codes
from tests.console.pages import words_of
from tests.retrieval.collections import add_file, sent
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
POOLS = "/collections/tracks/pools/"


def ask(rosa, collection, **more):
    form = {"targets": "runs", "method": "quotas", "uniform": 0, "cap": 0, "seed": 7}
    for run in collection.files.filter(kind="run"):
        form |= {f"use_{run.pk}": "on", f"quota_{run.pk}": 2}
    return rosa.post(POOLS, form | more)


def test_a_pool_that_is_taken_away_is_in_the_audit_log(rosa, collection):
    assert ask(rosa, collection).status_code == 302
    assert rosa.get(f"{POOLS}1.csv").status_code == 200
    entry = AuditEntry.objects.get(action="export", subject="tracks")
    assert entry.details == {"file": "tracks-pool-1.csv"}


def test_a_topic_that_no_database_holds_is_not_found_in_a_pool(rosa, collection):
    ask(rosa, collection)
    assert rosa.get(f"{POOLS}1/", {"topic": "t\0"}).status_code == 200


def test_a_pool_without_any_candidate_is_refused_with_a_reason(rosa, collection):
    assert ask(rosa, collection, targets="named", named="nobody").status_code == 302
    job = Job.objects.get(kind="make_pool")
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    assert not CollectionVersion.objects.exists()


def test_the_choices_of_a_pool_that_failed_are_offered_again(rosa, collection):
    choices = {"method": "depth", "targets": "named", "named": "nobody\nnoone", "n": 5, "seed": 3}
    ask(rosa, collection, **choices, excluded="d1")
    assert Job.objects.get(kind="make_pool").state == Job.State.FAILED
    offered = rosa.get("/collections/tracks/pools/").context["form"]
    assert {name: offered[name].value() for name in choices} == choices
    assert offered["excluded"].value() == "d1"
    used = [row.value() for _file, row, _quota in offered.source_rows()]
    assert any(used)


def test_numbers_that_no_database_holds_are_refused_on_the_form(rosa, collection):
    add_file(collection, "second.txt", "t1 0 d1 1\nt1 0 d2 0\n")
    files = collection.files.all()
    runs = [file.pk for file in files.filter(kind="run")]
    qrels = files.get(name="qrels.txt").pk
    form = {"runs": runs, "measures": ["nDCG@10"], "missing": "common", "ties": "falling"}
    for page, more in (
        ("evaluation", {"qrels": qrels, "seed": 10**20}),
        ("trust", {"qrels": [qrels], "seed": 0, "top": 10**20}),
        ("reuse", {"qrels": qrels, "seed": 0, "pool_depth": 10**20}),
    ):
        answer = rosa.post(f"/collections/tracks/{page}/", form | more)
        assert answer.status_code == 422
        assert list(field_codes(answer.context["form"]).values()) == [["max_value"]]
    assert not Job.objects.exclude(kind="read_collection_files").exists()


CATALOGUE = "docno,title\n" + "".join(f"d{n},Shoe {n}\n" for n in range(20))


def add_catalogue(rosa, text=CATALOGUE, name="shoes.csv"):
    data = {"kind": "catalogue", "file": sent(name, text), "name": ""}
    assert rosa.post(f"{POOLS}sources/", data).status_code == 302


def fit_codes(rosa, n=0):
    """How well a catalogue fits the runs and the sample, by the codes of the page's sentences."""
    return codes_of(rosa.get(POOLS).context["sources"][n].sentences)


def test_the_page_says_how_well_a_catalogue_fits_each_run(rosa, collection):
    add_file(collection, "same.run", "d1 Q0 d2 1 2 same\nd1 Q0 d3 2 1 same\n")
    collection.files.filter(name__in=["bm25", "rm3"]).delete()
    add_catalogue(rosa)
    assert fit_codes(rosa) == ["some_documents_known", "no_topic_known"]
    [row] = rosa.get(POOLS).context["sources"]
    assert {(fit.run.name, fit.n_known, fit.n_documents) for fit in row.fits} == {
        *(("dense", 20, 30), ("same", 2, 2)),
    }
    collection.files.filter(name="dense").delete()
    assert fit_codes(rosa) == ["documents_known", "topics_known"]


def test_a_run_that_comes_later_is_compared_with_the_catalogue_too(rosa, collection):
    add_catalogue(rosa, "docno,title\nx1,Boot\n")
    run = sent("late.run", "t1 Q0 x1 1 2 late\n")
    rosa.post("/collections/tracks/files/", {"uploads": [run]})
    assert set(fit_codes(rosa)) == {"no_document_known", "no_topic_known"}
    fits = FileFit.objects.filter(run__name="late")
    assert list(fits.values_list("n_known", "n_documents")) == [(1, 1)]


def test_a_catalogue_is_described_and_removed_from_the_page_of_pools(rosa, collection):
    add_catalogue(rosa)
    file = collection.files.get(kind="catalogue")
    where = f"/collections/tracks/files/{file.pk}/"
    page = rosa.get(POOLS).content.decode()
    assert f'action="{where}remove/"' in page
    assert "made_by" not in rosa.get(where).context["form"].fields
    assert rosa.post(where, {"name": "Shoes"}).url == POOLS
    assert rosa.post(f"{where}remove/").url == POOLS
    assert not collection.files.filter(kind="catalogue").exists()


def test_pictures_that_a_catalogue_names_and_lacks_are_listed_by_line(rosa, collection):
    add_catalogue(rosa, "docno,title,image\nd1,Shoe,d1.png\nd2,Boot,\n")
    file = collection.files.get(kind="catalogue")
    assert (file.is_usable, file.n_warnings) == (True, 1)
    [(line, text)] = file.warnings
    assert (line, text[:4]) == (2, "d1: ")
    page = words_of(rosa.get(f"/collections/tracks/files/{file.pk}/").content.decode())
    assert text in page


def test_a_pools_page_leads_to_the_launch_of_its_study(rosa, collection):
    ask(rosa, collection)
    allowed = list(PoolFinding.objects.values_list("name", flat=True).order_by("name").distinct())
    form = {"title": "Pooled", "template": "graded_relevance", "allowed": allowed}
    assert rosa.post(f"{POOLS}1/study/", form).status_code == 302
    study = Study.objects.get(title="Pooled")
    page = rosa.get(f"{POOLS}1/").content.decode()
    assert "launch_next" in codes_on(page)
    assert f'href="/studies/{study.slug}/launch/"' in page
    connection = Connection.objects.create(
        name="Away", marketplace="away.example.org", endpoint_url="http://127.0.0.1:9/requester"
    )
    terms = {"title": "Judge", "description": "Judge.", "reward_usd": "0.10"}
    batch = Batch.objects.create(study=study, connection=connection, **terms)
    assert "launch_next" in codes_on(rosa.get(f"{POOLS}1/").content.decode())
    Batch.objects.filter(pk=batch.pk).update(hit_type_id="3HITTYPE")
    assert "launched" in codes_on(rosa.get(f"{POOLS}1/").content.decode())
    assert "launch_next" not in codes_on(rosa.get(f"{POOLS}1/").content.decode())


def test_a_second_assessment_is_offered_once_the_first_is_launched(rosa, researcher, collection):
    study = rating_study("grades", n_items=6, owner=researcher, team=collection.team)
    link_studies(collection=collection, studies=[study], actor=researcher)
    for n in range(6):
        rate(study, "Ann", f"d{n}", {"alpha": 20 * n})
    connection = Connection.objects.create(
        name="Away", marketplace="away.example.org", endpoint_url="http://127.0.0.1:9/requester"
    )
    terms = {"title": "Judge", "description": "Judge.", "reward_usd": "0.10"}
    batch = Batch.objects.create(study=study, connection=connection, **terms)
    judgments = "/collections/tracks/judgments/"
    assert "?again=" not in rosa.get(judgments).content.decode()
    Batch.objects.filter(pk=batch.pk).update(hit_type_id="3HITTYPE")
    page = rosa.get(judgments).content.decode()
    assert f'href="/studies/grades/launch/?again={batch.pk}"' in page
    rate(study, "Bob", "d0", {"alpha": 20}, round=2)
    assert "?again=" not in rosa.get(judgments).content.decode()


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("pools/", {"method": "quotas"}),
        ("pools/sources/", {"kind": "catalogue"}),
        ("pools/vectors/", {"vectors-part": "texts"}),
        ("files/", {}),
    ],
)
def test_what_is_refused_takes_the_focus_and_leads_to_its_field(rosa, collection, address, form):
    add_catalogue(rosa)
    answer = rosa.post(f"/collections/tracks/{address}", form)
    assert answer.status_code == 422
    page = answer.content.decode()
    notice = r'<div class="notice error" role="alert"[^>]*autofocus.*?</div>'
    summary = re.search(notice, page, re.DOTALL)
    assert summary
    targets = re.findall(r'href="#([^"]+)"', summary[0])
    assert targets
    assert [one for one in targets if f'id="{one}"' not in page] == []


def test_a_second_source_of_a_name_is_refused_and_not_kept(rosa, collection):
    for name, status in (("Shoes", 302), ("Shoes", 422)):
        text = CATALOGUE if status == 302 else f"{CATALOGUE}x1,Boot\n"
        data = {"kind": "catalogue", "file": sent("shoes.csv", text), "name": name}
        answer = rosa.post(f"{POOLS}sources/", data)
        assert answer.status_code == status
    assert field_codes(answer.context["source_form"]) == {"file": ["name_taken"]}
    assert collection.files.filter(kind="catalogue").count() == 1


def draw(rosa, text, n=2):
    form = {"n": n, "by": "column", "column": "v", "strata": 1, "allocation": "equal", "seed": 1}
    answer = rosa.post("/collections/tracks/targets/", form | {"file": sent("t.csv", text)})
    assert answer.status_code == 302
    return CollectionVersion.objects.filter(kind="targets").latest("pk")


def test_the_page_says_how_many_targets_of_the_sample_a_catalogue_knows(rosa, collection):
    add_catalogue(rosa)
    for text, number, n_known, code in (
        ("target,v\nd1,1\nd2,2\n", 1, 2, "targets_known"),
        ("topic,target,v\nt1,x1,1\nt2,d2,2\n", 2, 1, "targets_known"),
        ("target,v\nx1,1\nx2,2\n", 3, 0, "no_target_known"),
    ):
        draw(rosa, text)
        [row] = rosa.get(POOLS).context["sources"]
        fit = row.sample_fit
        assert (fit.sample.number, fit.n_known, fit.n_targets) == (number, n_known, 2)
        assert code in codes_of(row.sentences)
        assert "no_topic_known" not in codes_of(row.sentences)
    add_catalogue(rosa, "docno,title\nd1,Boot\n", "boots.csv")
    assert all("no_target_known" in fit_codes(rosa, n) for n in (0, 1))


def test_a_sampled_target_that_only_the_catalogue_knows_is_about_that_document(rosa, collection):
    run = add_file(collection, "same.run", "d1 Q0 d2 1 2 same\nd9 Q0 d3 1 1 same\n")
    add_catalogue(rosa)
    form = {"n": 2, "by": "max", "source": run.pk, "strata": 1, "allocation": "equal", "seed": 1}
    assert rosa.post("/collections/tracks/targets/", form).status_code == 302
    sample = CollectionVersion.objects.get(kind="targets")
    catalogue = collection.files.get(kind="catalogue")
    ask(rosa, collection, targets=sample.pk, catalogue=catalogue.pk, uniform=3)
    pool = CollectionVersion.objects.get(kind="pool")
    assert set(pool.pooled_topics.values_list("topic", "docno")) == {("d1", "d1"), ("d9", "d9")}


def test_the_choices_of_the_last_pool_are_offered_for_the_next(rosa, collection):
    run = collection.files.get(name="dense")
    choices = {"method": "depth", "targets": "named", "named": "t1\nt2", "n": 3, "seed": 5}
    ask(rosa, collection, **choices, excluded="d1", **{f"use_{run.pk}": ""})
    assert CollectionVersion.objects.filter(kind="pool").count() == 1
    offered = rosa.get(POOLS).context["form"]
    assert {name: offered[name].value() for name in choices} == choices
    assert offered["excluded"].value() == "d1"
    assert not offered[f"use_{run.pk}"].value()
    assert offered[f"use_{collection.files.get(name='bm25').pk}"].value()
    # what came after the pool is offered as ever
    late = add_file(collection, "late.run", "t1 Q0 d1 1 2 late\n")
    sample = draw(rosa, "target,v\nd1,1\nd2,2\n")
    add_catalogue(rosa)
    offered = rosa.get(POOLS).context["form"]
    assert offered[f"use_{late.pk}"].value()
    assert offered["targets"].value() == str(sample.pk)
    assert offered["catalogue"].value() == str(collection.files.get(kind="catalogue").pk)
    assert offered["n"].value() == 3


def test_names_of_targets_may_have_commas_between_them():
    assert LISTED.sub(" ", "t01\nt99, t02,\nt,3").split() == ["t01", "t99", "t02", "t,3"]
