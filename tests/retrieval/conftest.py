import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accounts.models import User
from accounts.teams import create_team
from retrieval.collections import create_collection
from tests.annotation.importing import command_output

Run = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]
WriteFile = Callable[[str, str | bytes], Path]


@pytest.fixture
def file(tmp_path):
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def rosa(db):
    return User.objects.create_user("rosa")


@pytest.fixture
def collection(rosa):
    return create_collection(name="Tracks", team=create_team(name="Lab", owner=rosa), actor=rosa)


def record_of(command: str, *arguments: object) -> Any:
    return json.loads(command_output(command, *arguments, "--json"))


def run_arguments(file: WriteFile, runs: Mapping[str, str]) -> list[str]:
    return [f"--run={file(name, content)}" for name, content in runs.items()]


def run_text(run: Run, tag: str) -> str:
    """Lines in no order, with ranks that say nothing."""
    return "".join(
        f"{topic} Q0 {document} 1 {score} {tag}\n"
        for topic, documents in run.items()
        for document, score in documents.items()
    )


def qrels_text(grades: Grades) -> str:
    return "".join(
        f"{topic} 0 {document} {grade}\n"
        for topic, documents in grades.items()
        for document, grade in documents.items()
    )


def seeded_collection(
    n_runs: int, *, n_topics: int = 40, seed: int = 1
) -> tuple[Grades, list[Run]]:
    """Topics with ties, unjudged and negative grades; each run lacks some and has foreign ones."""
    rng = np.random.default_rng(seed)
    names = [f"{letter}{number}" for letter in ("a", "B", "é") for number in range(30)]
    grades: Grades = {}
    for topic in range(n_topics):
        pooled = rng.choice(names, 25, replace=False)
        highest = 0 if topic % 10 == 0 else 2
        grades[f"0{topic}"] = {str(doc): int(rng.integers(-1, highest + 1)) for doc in pooled}
    runs: list[Run] = []
    for skill in range(n_runs):
        run: Run = {}
        for topic in [*grades, "foreign"]:
            if topic != "foreign" and rng.random() < 0.1:
                continue
            listed = rng.choice(names, int(rng.integers(3, 40)), replace=False)
            known = grades.get(topic, {})
            run[topic] = {
                str(doc): round(skill * 0.4 * known.get(str(doc), 0) + float(rng.normal()), 1)
                for doc in listed
            }
        runs.append(run)
    return grades, runs


def easy_and_hard_topics() -> tuple[Grades, dict[str, str]]:
    """Runs A, of 25 easy topics, and B, of these and 25 hard ones, and better on each of A's.

    Reciprocal ranks of A are 1/2 or 1, of B 1, and on hard topics 1/4 or 1/5: A has .7 on its
    topics, and B .3 more there and a mean of about .6.
    """
    grades: Grades = {}
    lines: dict[str, list[str]] = {"A": [], "B": []}
    for number in range(50):
        topic, n = f"t{number:02d}", number % 5
        grades[topic] = {"rel": 1, "n0": 0, "n1": 0, "n2": 0, "n3": 0, "m0": 0}
        ranks = {"A": 2 if n < 3 else 1, "B": 1} if number < 25 else {"B": 4 + n % 2}
        for run, rank_of_relevant in ranks.items():
            listed = ["n0", "n1", "n2", "n3"]
            listed.insert(rank_of_relevant - 1, "rel")
            lines[run] += [
                f"{topic} Q0 {document} {at} {9 - at} {run}"
                for at, document in enumerate(listed, 1)
            ]
    return grades, {f"{run}.run": "\n".join(each) + "\n" for run, each in lines.items()}
