import zipfile
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from annotation.models import Study
from results.models import Result
from retrieval import collections, exceptions, file_readings, models, stored_files, trec_files
from retrieval.exports.grades import scale_of
from retrieval.pools.construction import make_pool
from retrieval.pools.records import Target
from retrieval.pools.sources import EmbeddingSource, RunSource
from retrieval.result_kinds.pools import plan_of, request_pool, stored_pool
from retrieval.stored_files import opened_catalogue, vectors_of
from tests.codes import refused, refused_naming
from tests.console.conftest import _immediate_tasks  # noqa: F401
from tests.retrieval.collections import sent
from tests.retrieval.pool_sources import catalogue_zip, run_text, targets, vectors_zip
from work.execution import run_job
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
TOPICS = targets(12)
RULES: dict[str, Any] = {"quotas": {"shape": 3, "colour": 3, "vectors": 2}, "seed": 5}
CONTENTS = {
    "shape": ("run", "shape.run", run_text("shape", TOPICS).encode()),
    "colour": ("run", "colour.run", run_text("colour", TOPICS).encode()),
    "vectors": ("embeddings", "vectors.zip", vectors_zip()),
    "products": ("catalogue", "products.zip", catalogue_zip()),
}


def add(collection, rosa, name, kind, file_name, content):
    file = sent(file_name, content)
    file = stored_files.store_file(collection=collection, file=file, actor=rosa, kind=kind)
    file_readings.request_reading(collection=collection, files=[file], requested_by=rosa)
    models.CollectionFile.objects.filter(pk=file.pk).update(name=name)
    file.refresh_from_db()
    return file


@pytest.fixture
def files(collection, rosa):
    return {name: add(collection, rosa, name, *content) for name, content in CONTENTS.items()}


def made(collection, rosa, files, rules=RULES):
    request_pool(collection=collection, files=list(files.values()), rules=rules, actor=rosa)
    job = Job.objects.get(kind="make_pool")
    assert job.state == Job.State.DONE, job.message
    return Result.objects.get(kind="pool")


def ask_study(version, rosa, title, template="alternatives", allowed=()):
    chosen = {"title": title, "template": template, "allowed": list(allowed)}
    collections.request_study(version=version, actor=rosa, **chosen)


def test_vectors_and_a_catalogue_are_counted_and_a_plan_without_sources_is_refused(
    files, collection, rosa
):
    vectors, products = files["vectors"], files["products"]
    assert (vectors.n_documents, vectors.n_dimensions, vectors.n_faults) == (32, 10, 0)
    assert (products.n_documents, products.n_faults) == (32, 0)
    catalogue = [files["products"]]
    with refused(exceptions.PoolUnfit, "no_sources"):
        request_pool(collection=collection, files=catalogue, rules=RULES, actor=rosa)
    with refused(exceptions.PoolUnfit, "plan_unfit"):
        plan_of({"depth": -1})


def test_a_stored_pool_is_the_pool_of_the_same_files_and_the_same_again_is_the_same_version(
    collection, rosa, files, tmp_path
):
    version = made(collection, rosa, files)
    paths = {}
    for name, (_kind, file_name, content) in CONTENTS.items():
        paths[name] = tmp_path / file_name
        paths[name].write_bytes(content)
    with opened_catalogue(paths["products"]) as catalogue, vectors_of(paths["vectors"]) as vectors:
        sources = [
            EmbeddingSource("vectors", vectors),
            RunSource("colour", trec_files.read_run(paths["colour"])),
            RunSource("shape", trec_files.read_run(paths["shape"])),
        ]
        targeted = [Target(topic, topic) for topic in sorted(TOPICS)]
        pool = make_pool(targeted, sources, plan_of(RULES), catalogue=catalogue)
    stored = stored_pool(version)
    for part in ("targets", "slots", "replacements", "dry", "plan"):
        assert getattr(stored, part) == getattr(pool, part), part
    facts = version.facts
    assert (facts["n_slots"], facts["n_least"], facts["n_most"]) == (96, 8, 8)
    assert facts["n_replacements"] == len(stored.replacements) > 0
    n_slots = {one["name"]: one["n_slots"] for one in version.record["sources"]}
    assert n_slots == {"colour": 36, "shape": 36, "vectors": 24}
    for topic, slots in stored_pool(version).by_topic().items():
        docnos = [slot.docno for slot in slots]
        assert len(docnos) == len(set(docnos)) == 8
        assert topic not in docnos
    job = request_pool(collection=collection, files=list(files.values()), rules=RULES, actor=rosa)
    run_job(job.pk)
    assert Result.objects.get(kind="pool").pk == version.pk
    other = RULES | {"seed": 6}
    request_pool(collection=collection, files=list(files.values()), rules=other, actor=rosa)
    assert Result.objects.filter(kind="pool").count() == 2


def test_a_pool_becomes_a_study_of_alternatives_or_grades_with_its_pictures(
    collection, rosa, files
):
    version = made(collection, rosa, files)
    ask_study(version, rosa, "Instead of it")
    study = Study.objects.get(slug="instead-of-it")
    assert (study.kind, study.team, study.items.count()) == ("alternatives", collection.team, 12)
    item = study.items.select_related("picture").get(key=TOPICS[0])
    assert bytes(item.picture.content).startswith(b"<svg")
    candidates = list(item.candidates.select_related("picture"))
    slots = stored_pool(version).by_topic()[TOPICS[0]]
    assert {(one.key, one.system) for one in candidates} == {(s.docno, s.source) for s in slots}
    assert len({one.picture_id for one in candidates}) == 8
    assert study.question("acceptable").level == "nominal"
    assert list(collection.studies.all()) == [study]
    assert models.PoolStudy.objects.get(version=version).study == study
    ask_study(version, rosa, "Grades", "graded_relevance")
    study = Study.objects.get(slug="grades")
    assert study.kind == "rating"
    assert study.questions.get().categories[-1] == "I can't judge"
    assert scale_of(study.questions.get()).names["I can't judge"] is None
    assert study.items.first().candidates.exclude(picture=None).count() == 8


def test_a_defective_pool_becomes_no_study_unless_what_is_wrong_is_allowed(collection, rosa, files):
    version = made(collection, rosa, files, RULES | {"quotas": {"shape": 31, "colour": 3}})
    names = set(models.PoolFinding.objects.filter(version=version).values_list("name", flat=True))
    assert names == {"quota", "short"}
    with refused_naming(exceptions.PoolDefective, "quota"):
        ask_study(version, rosa, "Bad", allowed=["short"])
    assert not Study.objects.exists()
    ask_study(version, rosa, "Bad", allowed=["short", "quota"])
    assert Study.objects.get().items.count() == 12
    assert models.PoolStudy.objects.get().allowed == "quota,short"


def test_a_target_without_candidates_is_left_out_of_the_study_and_named(collection, rosa, files):
    """An item with nothing to judge would hold every launch."""
    rules = RULES | {"targets": [TOPICS[0], "nowhere", TOPICS[1]]}
    version = made(collection, rosa, files, rules | {"quotas": {"shape": 3, "colour": 3}})
    allowed = ["quota", "short", "unlisted", "picture", "unknown"]
    ask_study(version, rosa, "Two of three", allowed=allowed)
    assert [item.key for item in Study.objects.get().items.order_by("pk")] == TOPICS[:2]
    assert "nowhere" in Job.objects.filter(kind="study_of_pool").get().message


def test_catalogues_and_vectors_that_cannot_be_used_are_refused(collection, rosa):
    file = add(collection, rosa, "twice", "catalogue", "twice.csv", b"docno,title\na,One\na,Two\n")
    assert [line for line, _problem in file.faults] == [3]
    file = add(collection, rosa, "zip", "embeddings", "pictures.zip", catalogue_zip())
    assert ".npy" in file.faults[0][1]


def zipped(compression, array):
    content = BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        archive.writestr("v.npy", array)
        archive.writestr("v.ids", "a\nb\n")
    return content.getvalue()


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_zip_whose_content_is_damaged_is_a_fault_of_the_file(collection, rosa, compression):
    array = BytesIO()
    np.save(array, np.random.default_rng(1).random((200, 4)))
    content = bytearray(zipped(compression, array.getvalue()))
    content[60:110] = bytes(50)
    file = add(collection, rosa, "v", "embeddings", "v.zip", bytes(content))
    assert not file.is_usable
    assert file.n_faults == 1
