import csv
from collections import Counter
from io import BytesIO
from math import nan
from zipfile import ZipFile

import numpy as np
import pytest
from django.core.management.base import CommandError

from annotation import imports, models
from annotation.readers.item_files import read_alternatives
from retrieval.exceptions import PoolDefective, PoolFileFaults, PoolUnfit, SampleUnfit
from retrieval.pools import pool_files, records, vectors
from retrieval.pools.catalogue import pool_study, read_catalogue, read_targets
from retrieval.pools.sampling import difficulty, require_possible, sample_targets
from retrieval.pools.sources import EmbeddingSource
from stats.ranking.query_difficulty import query_difficulty
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval import pool_sources
from tests.retrieval.conftest import record_of, run_text

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
    pool = pool_files.read_pool(pool_file)
    direct = pool_study(pool, read_catalogue(files / "catalogue.csv"))
    assert tuple(direct.items) == draft.items
    imports.import_study(draft=direct, path=pool_file, slug="shoes")
    study = models.Study.objects.get(slug="shoes")
    systems = models.Candidate.objects.filter(item__study=study)
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


def pool(folder):
    sources = [f"--run={name}={folder / name}.run" for name in POOLED]
    quotas = [f"--quota={name}=2" for name in (*POOLED, "vectors")]
    return record_of(
        *("pool_candidates", *sources, *quotas, "--seed", 7),
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


def targets(n):
    return [records.Target(f"q{number}", f"d{number}") for number in range(n)]


def sampled(*options):
    return record_of("sample_targets", *options)


def test_each_quarter_gives_as_many_targets_whatever_the_shape_of_the_values():
    values = np.random.default_rng(0).lognormal(sigma=3, size=400)
    sample = sample_targets(targets(400), values, 60, seed=1)
    assert [each.n_drawn for each in sample.strata] == [15] * 4
    assert [each.n_targets for each in sample.strata] == [100] * 4
    for each in sample.targets:
        stratum = sample.strata[each.stratum - 1]
        assert stratum.low <= each.value <= stratum.high
        assert each.probability == 0.15
    highs, lows = ([getattr(each, side) for each in sample.strata] for side in ("high", "low"))
    assert all(high < low for high, low in zip(highs, lows[1:], strict=False))


def test_shares_are_those_of_the_strata_and_who_has_no_value_is_not_drawn():
    values = np.repeat([1.0, 2.0, 3.0], [100, 60, 40])
    sample = sample_targets(targets(200), values, 51, n_strata=3, allocation="proportional")
    few = {1.0: 25, 2.0: 15, 3.0: 10}
    assert all(each.n_drawn - few[each.low] in (0, 1) for each in sample.strata)
    assert len(sample.targets) == 51
    values = np.array([1.0] * 90 + [2.0] * 7 + [3.0] * 3)
    sample = sample_targets(targets(100), values, 20, n_strata=10)
    assert [(each.low, each.high) for each in sample.strata] == [(1, 1), (2, 3)]
    assert [each.n_drawn for each in sample.strata] == [10, 10]
    assert sample.strata[1].probability == 1.0
    values = np.array([1.0, nan, 2.0, nan])
    sample = sample_targets(targets(4), values, 2, n_strata=2)
    assert {each.target.topic for each in sample.targets} == {"q0", "q2"}
    [note] = sample.notes()
    assert note[0] == "2"
    with refused(SampleUnfit, field="n"):
        sample_targets(targets(4), values, 3)


def test_the_seed_decides_who_is_drawn_and_each_is_drawn_as_often():
    values = np.random.default_rng(0).normal(size=100)
    first, again, other = (sample_targets(targets(100), values, 10, seed=s) for s in (4, 4, 5))
    assert first == again
    assert first.targets != other.targets
    values = np.arange(40.0)
    counts: Counter[str] = Counter()
    for seed in range(2000):
        sample = sample_targets(targets(40), values, 8, seed=seed)
        counts.update(each.target.topic for each in sample.targets)
    # 400 expected; the standard deviation is 17.9.
    assert all(abs(counts[target.topic] - 400) < 4.5 * 17.9 for target in targets(40))


def test_any_column_of_a_file_can_be_stratified_by(file, tmp_path):
    rows = "".join(f"d{number},{number % 7}\n" for number in range(70)) + "none,\n"
    path = file("targets.csv", f"target,price\n{rows}")
    output = tmp_path / "drawn.csv"
    options = (f"--targets={path}", "--column=price", "--seed=3", "--output", output)
    record = sampled("--n=14", *options)
    assert (record["n"], record["seed"], record["column"]) == (14, 3, "price")
    assert record["n_undefined"] == 1
    read = read_targets(output)
    assert [target.docno for target in read] == [each["target"] for each in record["targets"]]
    path = file("targets.csv", "target,price\nd1,cheap\n")
    with refused(PoolFileFaults, lines=[2]):
        sampled("--n=1", f"--targets={path}", "--column=price")


def test_the_predictor_of_a_run_is_that_of_its_scores(file):
    rng = np.random.default_rng(1)
    lists = {f"q{topic}": rng.gamma(2, size=30) for topic in range(20)}
    run = {topic: {f"d{at}": each for at, each in enumerate(row)} for topic, row in lists.items()}
    path = file("bm25.run", run_text(run, "bm25"))
    options = (f"--run=bm25={path}", "--predictor=nqc", "--cutoff=10", "--strata=1")
    record = sampled("--n=20", *options)
    means = [each.mean() for each in lists.values()]
    expected = query_difficulty("nqc", list(lists.values()), corpus_score=means, cutoff=10)
    drawn = {each["topic"]: each["value"] for each in record["targets"]}
    assert drawn == pytest.approx(dict(zip(lists, expected.tolist(), strict=True)))
    assert record["signature"].startswith("nqc|cutoff:10|corpus:")
    assert "|run|file:bm25.run" in record["signature"]


@pytest.mark.parametrize("similarity", ["cosine", "inner", "l2"])
def test_the_predictor_of_embeddings_is_that_of_all_their_similarities(similarity):
    array = np.random.default_rng(5).normal(size=(60, 5))
    source = EmbeddingSource("e", vectors.Vectors([f"d{n}" for n in range(60)], array), similarity)
    values, signature = difficulty([*targets(6), records.Target("x", "x")], source, "wig", cutoff=4)
    distances = np.linalg.norm(array[:, None] - array[None], axis=2)
    lengths = np.linalg.norm(array, axis=1)
    scores = {
        "inner": array @ array.T,
        "cosine": 1 + array @ array.T / np.outer(lengths, lengths),
        "l2": 1 / (1 + distances),
    }[similarity]
    for number in range(6):
        expected = np.sort(np.delete(scores[number], number))[-4:].mean() - scores[number].mean()
        assert values[number] == pytest.approx(expected)
    assert np.isnan(values[6])
    assert "corpus:" in signature


def test_scores_that_a_predictor_cannot_take_are_refused(tmp_path):
    source = pool_sources.run_source("a", {"q": ["x", "y"]})
    with refused_naming(PoolUnfit, "smv", "scores"):
        difficulty([records.Target("q")], source, "smv")
    run = tmp_path / "run"
    run.write_text("1 Q0 a 1 inf x\n1 Q0 b 2 -inf x\n2 Q0 a 1 1 x\n2 Q0 b 2 0.5 x\n")
    for predictor in ("nqc", "wig"):
        with refused_naming(PoolUnfit, "scores"):
            sampled("--n", "1", "--run", f"x={run}", "--predictor", predictor)


def test_a_refusal_names_the_number_at_fault_and_one_that_can_be_drawn():
    for n, n_strata, given, field in (
        (5, 1, [1.0, 2.0], "n"),
        (2, 3, [1.0, 2.0, 3.0, 4.0], "strata"),
        (4, 3, [1.0, 1.0, 1.0, 2.0], "strata"),
    ):
        with refused(SampleUnfit, field=field):
            require_possible(n, n_strata, np.array(given))
    values = np.repeat([1.0, 2.0, 3.0], [700, 200, 100])
    with refused(SampleUnfit, field="strata", number=2):
        require_possible(40, 4, values)
    require_possible(40, 2, values)
    require_possible(4, 2, np.array([1.0, 1.0, 2.0, 3.0]))
    require_possible(4, 4, np.array([1.0, 2.0, 3.0, 4.0]))
    values = np.repeat([1.0, 2.0], [900, 100])
    with refused(SampleUnfit, field="n", number=10):
        require_possible(4, 2, values, allocation="proportional")
    # Equal remainders are decided by lot, which may leave it out.
    with pytest.raises(SampleUnfit):
        require_possible(5, 2, values, allocation="proportional")
    for n in (6, 10):
        require_possible(n, 2, values, allocation="proportional")
    require_possible(4, 2, values)


def test_the_command_names_the_option_at_fault(tmp_path):
    path = tmp_path / "targets.csv"
    path.write_text("target,clicks\na,1\nb,1\nc,1\nd,2\n")
    options = (f"--targets={path}", "--column=clicks")
    with refused_naming(CommandError, "--strata", "clicks", 2, 3):
        sampled("--n=4", "--strata=3", *options)
    with refused_naming(CommandError, "--n", 9):
        sampled("--n=9", "--strata=3", *options)
    for wrong, named in (
        ((), ["--column", "--predictor"]),
        (("--column=price",), ["--column", "--targets"]),
        (("--predictor=nqc",), ["--predictor", "--run"]),
    ):
        with refused_naming(CommandError, *named):
            sampled("--n=3", *wrong)
