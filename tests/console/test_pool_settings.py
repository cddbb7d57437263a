"""What a pool takes on its page beside sources and targets: vectors, similarities, fusion."""

import io
import json
import zipfile

import numpy as np
import pytest
from django.core.management import call_command

from retrieval.models import CollectionVersion
from tests.codes import field_codes
from tests.retrieval.collections import add_file

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
POOLS = "/collections/tracks/pools/"


def ask(rosa, collection, **more):
    form = {"targets": "runs", "method": "quotas", "uniform": 0, "cap": 0, "seed": 7}
    for run in collection.files.filter(kind="run"):
        form |= {f"use_{run.pk}": "on", f"quota_{run.pk}": 2}
    return rosa.post(POOLS, form | more)


def vectors_zip(names, array):
    """A zip of vectors as it is sent."""
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
    content = client.get(f"{POOLS}{number}.json")
    return json.loads(b"".join(content))


@pytest.mark.parametrize("similarity", ["cosine", "inner", "l2"])
def test_neighbours_of_topics_vectors_are_those_of_the_command(
    rosa, with_vectors, similarity, tmp_path
):
    more = {"similarity_{dense}": similarity}
    assert ask_vectors(rosa, with_vectors, **more).status_code == 302
    assert CollectionVersion.objects.get().n_topics == 2
    slots = pooled(rosa, 1)["slots"]
    for file in with_vectors.files.filter(kind="embeddings"):
        archive = b"".join(bytes(part.content) for part in file.parts.all())
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            stem = file.name.removesuffix(".zip")
            (tmp_path / f"{stem}.npy").write_bytes(members.read("v.npy"))
            (tmp_path / f"{stem}.ids").write_bytes(members.read("v.ids"))
    (tmp_path / "targets.txt").write_text("t0\nt1\n")
    out = io.StringIO()
    call_command(
        "pool_candidates",
        *("--embeddings", f"dense.zip={tmp_path / 'dense.npy'}"),
        *("--queries", f"dense.zip={tmp_path / 'topics.npy'}"),
        *("--similarity", f"dense.zip={similarity}", "--targets", str(tmp_path / "targets.txt")),
        *("--depth", "5", "--seed", "7", "--json"),
        stdout=out,
    )
    expected = json.loads(out.getvalue())["slots"]
    order = lambda slot: (slot["topic"], slot["docno"])  # noqa: E731
    found, wanted = (
        [(slot["topic"], slot["docno"], slot["source_rank"]) for slot in sorted(all, key=order)]
        for all in (slots, expected)
    )
    assert found == wanted
    assert len(found) == 10


def test_similarities_pool_other_documents(rosa, with_vectors):
    for similarity in ("cosine", "inner"):
        ask_vectors(rosa, with_vectors, **{"similarity_{dense}": similarity})
    one, other = (
        {(slot["topic"], slot["docno"]) for slot in pooled(rosa, number)["slots"]}
        for number in (1, 2)
    )
    assert one != other


def test_vectors_of_another_length_cannot_be_chosen_for_topics(rosa, with_vectors):
    odd = with_vectors.files.get(name="odd.zip").pk
    answer = ask_vectors(rosa, with_vectors, **{"queries_{dense}": odd})
    assert answer.status_code == 422
    assert '<details class="more" open>' in answer.content.decode()


def test_fusion_takes_its_constant_from_the_form(rosa, collection, tmp_path):
    taken = {"method": "take", "n": 4}
    assert ask(rosa, collection, **taken).status_code == 302
    assert ask(rosa, collection, **taken, fusion_constant=1, fusion_depth=3).status_code == 302
    rules = [one.rules for one in CollectionVersion.objects.order_by("number")]
    assert [(one["fusion_constant"], one["fusion_depth"]) for one in rules] == [(60, 1000), (1, 3)]
    runs = []
    for file in collection.files.filter(kind="run"):
        path = tmp_path / file.name
        path.write_bytes(b"".join(bytes(part.content) for part in file.parts.all()))
        runs += ["--run", f"{file.name}={path}"]
    out = io.StringIO()
    options = ("--take", "4", "--fusion-constant", "1", "--fusion-depth", "3", "--seed", "7")
    call_command("pool_candidates", *runs, *options, "--json", stdout=out)
    by_command, by_page, usual = (
        {(slot["topic"], slot["docno"], slot["source_rank"]) for slot in one["slots"]}
        for one in (json.loads(out.getvalue()), pooled(rosa, 2), pooled(rosa, 1))
    )
    assert by_page == by_command
    assert by_page != usual


def test_a_constant_of_fusion_that_cannot_be_is_refused(rosa, collection):
    answer = ask(rosa, collection, method="take", n=4, fusion_constant=0)
    assert answer.status_code == 422
    assert field_codes(answer.context["form"]) == {"fusion_constant": ["min_value"]}
