import csv
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pytest
from django.core.management.base import CommandError

from annotation.imports import import_study
from annotation.models import Candidate, Study
from annotation.readers.item_files import read_alternatives
from retrieval.exceptions import PoolDefective, PoolFileFaults, PoolUnfit
from retrieval.pools.catalogue import pool_study, read_catalogue
from retrieval.pools.pool_files import read_pool
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval import pool_sources
from tests.retrieval.conftest import record_of

N = 40


@pytest.fixture
def files(file):
    rng = np.random.default_rng(0)
    rows = ["docno,title,image"]
    for number in range(N):
        colour = f"#0000{number:02x}"
        file(f"{number}.svg", f'<svg xmlns="http://www.w3.org/2000/svg" fill="{colour}"/>')
        rows.append(f"d{number},shoe {number},{number}.svg")
    folder = file("catalogue.csv", "\n".join(rows)).parent
    np.save(folder / "pixels.npy", rng.normal(size=(N, 8)))
    file("pixels.ids", "\n".join(f"d{number}" for number in range(N)))
    file("targets.txt", "d0\nd1\nd2\n")
    run = [f"d{topic} Q0 d{n} 1 {-n} bm25" for topic in range(3) for n in range(N)]
    file("bm25.run", "\n".join(run))
    return folder


def pooled(folder, *options):
    return record_of(
        *("pool_candidates", f"--run=bm25={folder}/bm25.run", *options),
        *(f"--embeddings=pixels={folder}/pixels.npy", f"--targets={folder}/targets.txt"),
        f"--catalogue={folder}/catalogue.csv",
    )


def test_a_pool_says_what_it_was_made_of_and_its_seed_makes_it_again(files):
    record = pooled(files, "--quota=bm25=3", "--quota=pixels=4", "--uniform=1", "--seed=7")
    assert record["plan"]["quotas"] == {"bm25": 3, "pixels": 4}
    assert record["plan"]["seed"] == 7
    assert [source["kind"] for source in record["sources"]] == ["run", "embeddings"]
    assert all("sha256:" in source["signature"] for source in record["sources"])
    assert record["report"]["candidates"] == {"planned": 8, "least": 8, "mean": 8.0, "most": 8}
    assert len(record["slots"]) == 24
    assert record["lint"]["counts"]["repeat"]["n"] == 0
    options = ("--quota=bm25=3", "--quota=pixels=4", "--uniform=2")
    assert pooled(files, *options, "--seed=7") == pooled(files, *options, "--seed=7")
    assert pooled(files, *options, "--seed=7") != pooled(files, *options, "--seed=8")


@pytest.mark.django_db
def test_a_pool_becomes_an_alternatives_study_with_its_sources(files):
    lines = files / "elsewhere" / "pool.jsonl"
    lines.parent.mkdir()
    pool_file = files / "pool.json"
    options = (f"--alternatives={lines}", f"--output={pool_file}", "--allow=hub")
    pooled(files, "--quota=bm25=3", "--quota=pixels=4", *options)
    draft = read_alternatives(lines)
    pool = read_pool(pool_file)
    direct = pool_study(pool, read_catalogue(files / "catalogue.csv"))
    assert tuple(direct.items) == draft.items
    import_study(draft=direct, path=pool_file, slug="shoes")
    study = Study.objects.get(slug="shoes")
    systems = Candidate.objects.filter(item__study=study)
    assert set(systems.values_list("item__key", "key", "system")) == {
        (slot.topic, slot.docno, slot.source) for slot in pool.slots
    }
    assert all(item.picture for item in study.items.all())


def test_a_defective_pool_is_not_written_for_a_study(files):
    lines = files / "pool.jsonl"
    (files / "2.svg").unlink()
    with refused_naming(PoolDefective, "2.svg"):
        pooled(files, "--depth=5", f"--alternatives={lines}")
    assert not lines.exists()
    pooled(files, "--depth=5", f"--alternatives={lines}", "--allow=picture", "--allow=hub")
    assert lines.exists()


def test_without_targets_the_topics_of_the_runs_are_pooled(files):
    record = record_of("pool_candidates", f"--run=bm25={files}/bm25.run", "--take=4")
    assert record["targets"] == [{"topic": f"d{n}", "docno": f"d{n}"} for n in range(3)]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), ["--quota", "--depth", "--take"]),
        (("--depth=3", "--take=4"), ["--quota", "--depth", "--take"]),
        (("--depth=3", "--similarity=words=l2"), ["words"]),
        (("--depth=3", "--similarity=pixels=dot"), ["dot", "cosine", "inner", "l2"]),
        (("--quota=pixels",), ["'pixels'"]),
    ],
)
def test_options_that_mean_nothing_are_refused(files, options, named):
    with refused_naming(CommandError, *named):
        pooled(files, *options)


def test_targets_that_no_source_knows_are_said_or_refused(files, file):
    run = f"--run=bm25={files}/bm25.run"
    some, none = file("t.txt", "d0\nd99"), file("u.txt", "d98\nd99")
    known = ("pool_candidates", run, f"--targets={some}", "--depth=3")
    lines = command_output(*known).splitlines()
    [line] = [line for line in lines if line.startswith("unlisted")]
    assert line.split()[1:3] == ["1", "1"]
    with refused_naming(PoolDefective, "unlisted"):
        command_output(*known, f"--alternatives={files}/pool.jsonl")
    unknown = (f"--targets={none}", f"--output={files}/pool.csv")
    with pytest.raises(PoolUnfit):
        command_output("pool_candidates", run, *unknown, "--depth=3")
    assert not (files / "pool.csv").exists()


def test_targets_and_catalogues_are_refused_by_line(files, file):
    file("targets.txt", "d0\nd0\na b\n")
    with refused(PoolFileFaults, lines=[2, 3]):
        pooled(files, "--depth=3")
    file("targets.txt", "d0\n")
    file("catalogue.csv", "docno,title\nd0,a\nd1,b\nd0,c\n,d\n")
    with refused(PoolFileFaults, "twice", lines=[4, 5]):
        pooled(files, "--depth=3")
    file("catalogue.csv", "shoe,title\nd0,a\nd1,b\n")
    with refused(PoolFileFaults, "missing_column", lines=[1]):
        pooled(files, "--depth=3")
    rows = '{"docno": "a b"}\n{"title": "no name"}\n'
    with refused(PoolFileFaults, lines=[1, 2]):
        read_catalogue(file("catalogue.jsonl", rows))


TOPICS = pool_sources.targets(30)
POOLED = ("shape", "colour", "pattern")


@pytest.fixture
def folder(tmp_path):
    ZipFile(BytesIO(pool_sources.catalogue_zip())).extractall(tmp_path)
    ZipFile(BytesIO(pool_sources.vectors_zip())).extractall(tmp_path)
    for system in pool_sources.SYSTEMS:
        (tmp_path / f"{system}.run").write_text(pool_sources.run_text(system, TOPICS))
    return tmp_path


def pool(folder, seed=7):
    sources = [f"--run={name}={folder / name}.run" for name in POOLED]
    quotas = [f"--quota={name}=2" for name in (*POOLED, "vectors")]
    return record_of(
        *("pool_candidates", *sources, *quotas, "--seed", seed),
        *("--catalogue", folder / "catalogue.csv", "--output", folder / "pool.csv"),
        f"--embeddings=vectors={folder / 'products.npy'}",
    )


def test_from_runs_vectors_and_pictures_to_an_evaluation_of_a_run_that_was_left_out(folder):
    made = pool(folder)
    assert made["report"]["n_slots"] == 240
    assert not made["lint"]["is_refused"]
    catalogue = ("--catalogue", folder / "catalogue.csv")
    assert not record_of("lint_pool", folder / "pool.csv", *catalogue)["is_refused"]
    with (folder / "pool.csv").open() as file:
        rows = list(csv.DictReader(file))
    grades = [(row["topic"], row["docno"]) for row in rows if row["docno"]]
    qrels = folder / "qrels.txt"
    lines = (
        f"{topic} 0 {docno} {int(pool_sources.is_acceptable(topic, docno))}"
        for topic, docno in grades
    )
    qrels.write_text("\n".join(lines) + "\n")
    runs = [option for name in pool_sources.SYSTEMS for option in ("--run", folder / f"{name}.run")]
    measures = ("--measure", "nDCG@10", "--measure", "Judged@10")
    result = record_of("evaluate_runs", "--qrels", qrels, *runs, *measures)
    means = {(row["run"], row["measure"]): row["mean"] for row in result["results"]}
    # Of a target's four acceptable products all share its shape, three its pattern, one its colour.
    assert means["shape", "nDCG@10"] > means["pattern", "nDCG@10"] > means["colour", "nDCG@10"]
    pooled = [means[name, "Judged@10"] for name in POOLED]
    assert 0 < means["late", "Judged@10"] < max(pooled)
    assert len(result["comparisons"]) == 6 * 2
    # The same seed pools the same, and another presents it otherwise.
    assert pool(folder)["slots"] == made["slots"]
    other = pool(folder, seed=8)["slots"]
    assert other != made["slots"]
    assert len(other) == len(made["slots"])
