"""Evaluation of runs beside pytrec_eval and ir_measures: ``python -m benchmarks.evaluation``.

A drawn run of 100 documents for each of 10,000 topics, and 50 judgments a topic. From files, each
reads both and computes the measures for each topic; in memory, each has what it takes there.
Joined: of Assay the measures alone, of lists that were ranked and joined to their judgments once,
as an evaluation does for all its measures; the others join anew with each call.
Every time is the least of some repetitions, taken in turns; values are compared before they are
timed.

The last two tables are of CPU time: a run that is parsed, and the means of 50 runs of 1,000 topics
with three measures, from their files, as `evaluate_runs` computes them.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TextIO

import ir_measures
import numpy as np
import pytrec_eval

from benchmarks.commands import parse_options, say_head, say_row
from retrieval.evaluated_runs import Settings
from retrieval.evaluation import evaluate_runs, lists_of_run, positions
from retrieval.trec_files import read_qrels, read_run
from stats.ranking import JudgedLists, judged_lists, measure

MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")
OF_PYTREC_EVAL = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"}
OF_IR_MEASURES = [ir_measures.parse_measure(name) for name in MEASURES]
MEASURES_OF_MANY = ("nDCG@10", "AP", "RR")
MANY_OF_PYTREC_EVAL = ("ndcg_cut_10", "map", "recip_rank")
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


def drawn(n_topics: int, n_documents: int, n_judged: int, seed: int) -> tuple[Columns, Columns]:
    """Topic, document and score of each line of a run; topic, document and grade of qrels."""
    rng = np.random.default_rng(seed)
    size = 10 * n_topics
    columns = []
    for each in (n_documents, n_judged):
        start = rng.integers(size, size=(n_topics, 1))
        # A stride that is prime to all but itself names no document twice in a topic.
        documents = (start + 7919 * np.arange(each)) % size
        columns.append((np.repeat(np.arange(n_topics), each), documents.ravel()))
    scores = rng.normal(size=len(columns[0][0])).round(4)
    grades = rng.integers(0, 3, size=len(columns[1][0]))
    # A third of the judgments are of documents in the list.
    topic, document = columns[1]
    within = np.arange(len(topic)) % n_judged < n_judged // 3
    document[within] = columns[0][1].reshape(n_topics, -1)[:, : n_judged // 3].ravel()
    keep = np.unique(topic * size + document, return_index=True)[1]
    return (*columns[0], scores), (topic[keep], document[keep], grades[keep])


def write_files(folder: Path, run: Columns, qrels: Columns) -> tuple[Path, Path]:
    paths = folder / "run", folder / "qrels"
    lines = zip(*(column.tolist() for column in run), strict=True)
    paths[0].write_text("".join(f"t{t} Q0 doc{d} 0 {s} drawn\n" for t, d, s in lines))
    lines = zip(*(column.tolist() for column in qrels), strict=True)
    paths[1].write_text("".join(f"t{t} 0 doc{d} {g}\n" for t, d, g in lines))
    return paths


def of_files(run: Path, qrels: Path) -> list[float]:
    grades, one = read_qrels(qrels), read_run(run)
    return of_lists(
        lists_of_run(grades, one, positions(one.topics, grades.topics), True)["falling"]
    )


def parse_file(parse: Callable[[TextIO], Any], path: Path) -> Any:
    with path.open() as file:
        return parse(file)


def read_by_pytrec_eval(run: Path, qrels: Path) -> tuple[Any, Any]:
    return parse_file(pytrec_eval.parse_qrel, qrels), parse_file(pytrec_eval.parse_run, run)


def read_by_ir_measures(run: Path, qrels: Path) -> tuple[list[Any], list[Any]]:
    return list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(run)))


def of_dictionaries(grades: Any, run: Any) -> list[float]:
    per_topic = pytrec_eval.RelevanceEvaluator(grades, OF_PYTREC_EVAL).evaluate(run)
    names = ("ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100")
    return [float(np.mean([row[name] for row in per_topic.values()])) for name in names]


def of_rows(grades: Any, run: Any) -> list[float]:
    means = ir_measures.calc_aggregate(OF_IR_MEASURES, grades, run)
    return [float(means[one]) for one in OF_IR_MEASURES]


def of_lists(lists: JudgedLists) -> list[float]:
    return [float(measure(name).values(lists).mean()) for name in MEASURES]


def many_files(folder: Path, n_runs: int, n_topics: int, seed: int) -> tuple[list[Path], Path]:
    qrels = folder / "many.qrels"
    runs = []
    for n in range(n_runs):
        run, judged = drawn(n_topics, 100, 50, seed + n)
        written, of_run = write_files(folder, run, judged)
        runs.append(written.rename(folder / f"{n}.run"))
        of_run.rename(qrels)
    return runs, qrels


def of_many(runs: Sequence[Path], qrels: Path) -> list[float]:
    settings = Settings(measures=tuple(map(measure, MEASURES_OF_MANY)), pairs=False)
    evaluation = evaluate_runs(read_qrels(qrels), [read_run(path) for path in runs], settings)
    return [row.mean.value for row in evaluation.results]


def of_many_by_pytrec_eval(runs: Sequence[Path], qrels: Path) -> list[float]:
    grades = parse_file(pytrec_eval.parse_qrel, qrels)
    evaluator = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10", "map", "recip_rank"})
    means = []
    for path in runs:
        rows = evaluator.evaluate(parse_file(pytrec_eval.parse_run, path)).values()
        means += [float(np.mean([row[name] for row in rows])) for name in MANY_OF_PYTREC_EVAL]
    return means


def least_seconds(
    timed: dict[str, Callable[[], Any]],
    repetitions: int,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, float]:
    # Of each, in turns, so that what else the machine does falls on all.
    least = dict.fromkeys(timed, float("inf"))
    for _ in range(repetitions):
        for name, compute in timed.items():
            begun = clock()
            compute()
            least[name] = min(least[name], clock() - begun)
    return least


def write_ratios(title: str, seconds: dict[str, float]) -> None:
    for name, taken in seconds.items():
        say_row(title, name, f"{taken:.2f}", f"{taken / seconds['Assay']:.2f}")


def main() -> None:
    options = parse_options(
        __doc__,
        topics=(10_000, "of the run"),
        documents=(100, "of each topic"),
        runs=(50, "of 1,000 topics"),
        repetitions=(3, "of which the fastest counts"),
        seed=(0, "of the drawn run"),
    )
    run, qrels = drawn(options.topics, options.documents, 50, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), run, qrels)
        dictionaries, rows = read_by_pytrec_eval(*files), read_by_ir_measures(*files)
        tables: dict[str, dict[str, Callable[[], Any]]] = {
            "from files": {
                "Assay": lambda: of_files(*files),
                "pytrec_eval": lambda: of_dictionaries(*read_by_pytrec_eval(*files)),
                "ir_measures": lambda: of_rows(*read_by_ir_measures(*files)),
            },
            "in memory": {
                "Assay": lambda: of_lists(judged_lists(*run, *qrels, n_topics=options.topics)),
                "pytrec_eval": lambda: of_dictionaries(*dictionaries),
                "ir_measures": lambda: of_rows(*rows),
            },
        }
        joined = judged_lists(*run, *qrels, n_topics=options.topics)
        # a copy each time, which keeps nothing of the one before
        of_joined = {"Assay": lambda: of_lists(replace(joined))}
        tables["joined"] = tables["in memory"] | of_joined
        say_head("", "program", "seconds", "of Assay's time")
        for title, timed in tables.items():
            values = [compute() for compute in timed.values()]
            np.testing.assert_allclose(values, [values[0]] * len(values), atol=1e-6)
            write_ratios(title, least_seconds(timed, options.repetitions))
        parsed = {
            "Assay": lambda: read_run(files[0]),
            "pytrec_eval": lambda: parse_file(pytrec_eval.parse_run, files[0]),
        }
        n_lines = options.topics * options.documents
        cpu = least_seconds(parsed, options.repetitions, process_time)
        write_ratios(f"CPU, run of {n_lines:,} lines parsed", cpu)
        many = many_files(Path(folder), options.runs, 1000, options.seed)
        of_runs = {
            "Assay": lambda: of_many(*many),
            "pytrec_eval": lambda: of_many_by_pytrec_eval(*many),
        }
        np.testing.assert_allclose(*(compute() for compute in of_runs.values()), atol=1e-6)
        write_ratios(f"CPU, means of {options.runs} runs", least_seconds(of_runs, 1, process_time))


if __name__ == "__main__":
    main()
