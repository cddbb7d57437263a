"""Files of runs and qrels, written by the tests."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Run = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]
WriteFile = Callable[[str, str | bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> WriteFile:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


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
