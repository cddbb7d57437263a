"""A collection with runs and qrels, as files that were sent."""

from __future__ import annotations

import numpy as np
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import Team, User
from retrieval.collections import create_collection
from retrieval.file_readings import read_file
from retrieval.models import Collection, CollectionFile
from retrieval.stored_files import store_file

N_DOCUMENTS = 30


def run_text(tag: str, *, n_topics: int = 25, skill: float = 1.0, seed: int = 1) -> str:
    """A run that finds the relevant documents, the first five of each topic, by its skill."""
    rng = np.random.default_rng(seed)
    lines = []
    for topic in range(n_topics):
        scores = rng.normal(size=N_DOCUMENTS) + skill * (np.arange(N_DOCUMENTS) < 5)
        order = np.argsort(-scores)[:20]
        lines += [
            f"t{topic} Q0 d{document} {rank} {scores[document]:.4f} {tag}"
            for rank, document in enumerate(order, 1)
        ]
    return "\n".join(lines) + "\n"


def qrels_text(*, n_topics: int = 25, relevant: int = 5, judged: int = 30) -> str:
    """The first documents of each topic are relevant."""
    return "".join(
        f"t{topic} 0 d{document} {int(document < relevant)}\n"
        for topic in range(n_topics)
        for document in range(judged)
    )


def sent(name: str, text: str | bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode() if isinstance(text, str) else text)


def add_file(
    collection: Collection, name: str, text: str | bytes, **options: str
) -> CollectionFile:
    """A file sent and read."""
    file = store_file(collection=collection, file=sent(name, text), actor=None, **options)
    read_file(file)
    return file


def filled_collection(team: Team, owner: User, *, name: str = "Tracks") -> Collection:
    """Three runs, of which one is clearly best and two are alike, and qrels."""
    collection = create_collection(name=name, team=team, actor=owner)
    add_file(collection, "qrels.txt", qrels_text())
    for tag, skill, seed in (("dense", 3.0, 1), ("bm25", 0.5, 2), ("rm3", 0.5, 3)):
        add_file(collection, f"{tag}.run", run_text(tag, skill=skill, seed=seed))
    return collection
