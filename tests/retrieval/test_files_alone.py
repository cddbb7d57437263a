"""Pooling and evaluation from files alone: the commands, without a study and without a database."""

import csv
import json
from io import BytesIO, StringIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import call_command

from tests.retrieval.drawn_products import (
    SYSTEMS,
    catalogue_zip,
    is_acceptable,
    run_text,
    targets,
    vectors_zip,
)

TOPICS = targets(30)
POOLED = ("shape", "colour", "pattern")


def run(name: str, *options: object) -> dict[str, Any]:
    out = StringIO()
    call_command(name, *map(str, options), "--json", stdout=out)
    return json.loads(out.getvalue())  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path):
    """Four runs, vectors and a catalogue with pictures, as somebody has them on disk."""
    ZipFile(BytesIO(catalogue_zip())).extractall(tmp_path)
    ZipFile(BytesIO(vectors_zip())).extractall(tmp_path)
    for system in SYSTEMS:
        (tmp_path / f"{system}.run").write_text(run_text(system, TOPICS))
    return tmp_path


def pool(folder, seed=7):
    sources = [f"--run={name}={folder / name}.run" for name in POOLED]
    quotas = [f"--quota={name}=2" for name in (*POOLED, "vectors")]
    return run(
        "pool_candidates",
        *sources,
        f"--embeddings=vectors={folder / 'products.npy'}",
        *quotas,
        *("--catalogue", folder / "catalogue.csv", "--output", folder / "pool.csv"),
        *("--seed", seed),
    )


def test_from_runs_vectors_and_pictures_to_an_evaluation_of_a_run_that_was_left_out(folder):
    made = pool(folder)
    assert made["report"]["n_slots"] == 240
    assert not made["lint"]["is_refused"]
    assert not run("lint_pool", folder / "pool.csv", "--catalogue", folder / "catalogue.csv")[
        "is_refused"
    ]
    with (folder / "pool.csv").open() as file:
        rows = list(csv.DictReader(file))
    grades = [(row["topic"], row["docno"]) for row in rows if row["docno"]]
    qrels = folder / "qrels.txt"
    lines = (f"{topic} 0 {docno} {int(is_acceptable(topic, docno))}" for topic, docno in grades)
    qrels.write_text("\n".join(lines) + "\n")
    runs = [option for name in SYSTEMS for option in ("--run", folder / f"{name}.run")]
    measures = ("--measure", "nDCG@10", "--measure", "Judged@10")
    result = run("evaluate_runs", "--qrels", qrels, *runs, *measures)
    means = {(row["run"], row["measure"]): row["mean"] for row in result["results"]}
    # Of a target's four acceptable products all share its shape, three its pattern, one its colour.
    assert means["shape", "nDCG@10"] > means["pattern", "nDCG@10"] > means["colour", "nDCG@10"]
    pooled = [means[name, "Judged@10"] for name in POOLED]
    assert 0 < means["late", "Judged@10"] < max(pooled)
    assert len(result["comparisons"]) == 6 * 2


def test_the_same_seed_pools_the_same_and_another_presents_it_otherwise(folder):
    first, again = pool(folder), pool(folder)
    assert first["slots"] == again["slots"]
    other = pool(folder, seed=8)
    assert other["slots"] != first["slots"]
    assert len(other["slots"]) == len(first["slots"])
