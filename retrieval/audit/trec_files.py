from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotation.readers.drafts import ReadingReport
from presentation.numbers import count_of, plain_values
from retrieval.audit.records import AuditedFile, Finding
from retrieval.evaluated_runs import Settings
from retrieval.evaluation import evaluate_runs
from retrieval.exceptions import RunsUnfit, TrecFileFaults
from retrieval.exports.grades import CollectionSizes
from retrieval.rankings.label_sets import LabelSets, assessors_agree, label_sets
from retrieval.trec_files import (
    RelevanceGrades,
    Run,
    each_row,
    read_assessors,
    read_qrels,
    read_run,
)
from stats.arguments import Integers
from stats.ranking import measure
from stats.ranking.judged_lists import in_single_precision

HUB_SHARE = 0.1
JUDGED = measure("Judged@10")


def audit_qrels(path: Path, n_lines: int) -> tuple[AuditedFile, RelevanceGrades | None]:
    try:
        grades = read_qrels(path)
    except TrecFileFaults as faults:
        several = tuple(_of_several_assessors(path, faults))
        if several and (of_assessors := audit_assessors(path, n_lines)):
            return of_assessors, None
        return AuditedFile(path, "qrels", n_lines, findings=(*_refusals(faults), *several)), None
    facts = _qrels_facts(grades)
    findings = (*_reading_findings(grades.reading), *_qrels_findings(grades))
    return AuditedFile(
        path, "qrels", n_lines, n_rows=len(grades.grade), findings=findings, facts=facts
    ), grades


def audit_run(path: Path, n_lines: int, qrels: Sequence[RelevanceGrades]) -> AuditedFile:
    try:
        run = read_run(path)
    except TrecFileFaults as faults:
        return AuditedFile(path, "run", n_lines, findings=tuple(_refusals(faults)))
    against = [_against(grades, run) for grades in qrels]
    return AuditedFile(
        path,
        "run",
        n_lines,
        n_rows=len(run.score),
        findings=(
            *_reading_findings(run.reading),
            *_run_findings(run),
            *(one for found, _ in against for one in found),
        ),
        facts={**_run_facts(run), "judged_at_10": [facts for _, facts in against if facts]},
        related=tuple(grades.path for grades in qrels),
    )


def _reading_findings(report: ReadingReport) -> Iterator[Finding]:
    for each in report.left_out.values():
        lines = f"{count_of(each.n, 'line')} left out ({', '.join(each.places)})"
        yield Finding(
            name=each.reason.code, severity="note", text=f"{lines}: {each.reason}", n=each.n
        )
    for note in report.notes:
        yield Finding(name=note.code, severity="note", text=str(note).rstrip("."))


def _refusals(faults: TrecFileFaults) -> Iterator[Finding]:
    for line, problem in faults.faults:
        lines = () if line is None else (line,)
        yield Finding(name="unreadable", severity="refused", text=problem, lines=lines)


def _of_several_assessors(path: Path, faults: TrecFileFaults) -> Iterator[Finding]:
    if "twice" not in faults.codes:
        return
    assessors = {row.get("iteration", "") for _, row in each_row(path, "qrels")}
    if len(assessors) > 1:
        yield Finding(
            name="several_assessors",
            severity="note",
            text=f"column 2 has {len(assessors):,} values: it may hold one judgment by each "
            "assessor (qrels_jg), which is not read as qrels; merge them first",
            n=len(assessors),
        )


def _qrels_facts(grades: RelevanceGrades) -> dict[str, Any]:
    values, counts = np.unique(grades.grade, return_counts=True)
    return {
        "sizes": _sizes(grades).record(),
        "n_documents": len(grades.documents),
        "n_negative": int((grades.grade < 0).sum()),
        "grades": {str(v): c for v, c in zip(values.tolist(), counts.tolist(), strict=True)},
        "lines_per_topic": len(grades.grade) / len(grades.topics),
    }


def _sizes(grades: RelevanceGrades) -> CollectionSizes:
    n = len(grades.topics)
    judged = np.bincount(grades.topic[grades.grade >= 0], minlength=n)
    return CollectionSizes(judged, np.bincount(grades.topic[grades.grade > 0], minlength=n))


def _qrels_findings(grades: RelevanceGrades) -> Iterator[Finding]:
    n, sizes = len(grades.topics), _sizes(grades)
    document = {name: code for code, name in enumerate(grades.documents)}
    same = np.array([document.get(name, -1) for name in grades.topics])
    if own := int((same[grades.topic] == grades.document).sum()):
        yield Finding(
            name="target_in_pool",
            severity="defect",
            text=f"{count_of(own, 'topic')} of {n:,} judged as their own document",
            n=own,
            of=n,
        )
    if unjudged := int((sizes.judged == 0).sum()):
        yield Finding(
            name="empty_judgments",
            severity="defect",
            text=f"{count_of(unjudged, 'topic')} of {n:,} without any grade of 0 or more; "
            "trec_eval counts each as 0",
            n=unjudged,
            of=n,
        )
    if without := int((sizes.relevant == 0).sum()):
        yield Finding(
            name="nothing_relevant",
            severity="note",
            text=f"{count_of(without, 'topic')} of {n:,} without a relevant document; trec_eval "
            "counts each as 0",
            n=without,
            of=n,
        )
    yield from _hub_findings(grades)
    yield from _similar_names("topic", grades.topics)
    yield from _similar_names("document", grades.documents)


def _hub_findings(grades: RelevanceGrades) -> Iterator[Finding]:
    n = len(grades.topics)
    times = np.bincount(grades.document)
    is_hub = times >= max(2, HUB_SHARE * n)
    if is_hub.any() and n >= 20:
        share = times[is_hub].sum() / times.sum()
        yield Finding(
            name="hubs",
            severity="note",
            text=f"{count_of(int(is_hub.sum()), 'document')} pooled for at least {HUB_SHARE:.0%} "
            f"of the topics make up {share:.1%} of the lines",
            n=int(is_hub.sum()),
        )


def _similar_names(noun: str, names: Sequence[str]) -> Iterator[Finding]:
    """Names that differ in leading zeros or case alone are different to every tool."""
    first: dict[str, str] = {}
    pairs = []
    for name in names:
        folded = name.lstrip("0").casefold()
        if first.setdefault(folded, name) != name:
            pairs.append((first[folded], name))
    if pairs:
        a, b = pairs[0]
        yield Finding(
            name=f"similar_{noun}s",
            severity="note",
            text=f"{count_of(len(pairs), noun)} named as another but for case or leading zeros, "
            f"such as {a} and {b}: they are different to every tool",
            n=len(pairs),
        )


def _run_facts(run: Run) -> dict[str, Any]:
    lengths = np.bincount(run.topic)
    facts = {
        "tag": run.tag,
        "n_topics": len(run.topics),
        "n_documents": len(run.documents),
        "shortest_list": int(lengths.min()),
        "longest_list": int(lengths.max()),
        "n_infinite": run.n_infinite,
        "n_tied": int(_tied(run).sum()),
    }
    return plain_values(facts)


def _run_findings(run: Run) -> Iterator[Finding]:
    n = len(run.topics)
    if not run.tag:
        yield Finding(
            name="several_tags",
            severity="note",
            text="the last column, the run's name, is not the same in all lines",
        )
    if run.n_infinite:
        text = f"{count_of(run.n_infinite, 'infinite score')}, which sort well and are rarely meant"
        yield Finding(name="infinite_scores", severity="note", text=text, n=run.n_infinite)
    tied = np.unique(_tied(run))
    if len(tied):
        yield Finding(
            name="tied_scores",
            severity="note",
            text=f"{count_of(len(tied), 'topic')} of {n:,} with tied scores, which are broken by "
            "document name, falling in trec_eval and rising in some libraries",
            n=len(tied),
            of=n,
        )
    if topics := _ranked_otherwise(run):
        yield Finding(
            name="ranks_contradict_scores",
            severity="defect",
            text=f"{count_of(len(topics), 'topic')} of {n:,} whose ranks are not in the order of "
            "falling scores: trec_eval reads scores alone, so ranks are ignored (distances must "
            "be written as negative numbers)",
            n=len(topics),
            of=n,
            lines=tuple(topics),
        )


def _tied(run: Run) -> Integers:
    """The topic of every document whose score is, in single precision, that of one before it."""
    order = np.lexsort((run.score, run.topic))
    topic, score = run.topic[order], in_single_precision(run.score[order])
    tied: Integers = topic[1:][(topic[1:] == topic[:-1]) & (score[1:] == score[:-1])]
    return tied


def _ranked_otherwise(run: Run) -> list[int]:
    """A line of each topic in which a worse rank has a greater score, in the file's order."""
    if not len(run.contradicting):
        return []
    rows = run.contradicting[:, 0]
    _topics, first = np.unique(run.topic[rows], return_index=True)
    of_a_topic = set(rows[first].tolist())
    return [number for at, (number, _) in enumerate(each_row(run.path, "run")) if at in of_a_topic]


def _against(grades: RelevanceGrades, run: Run) -> tuple[list[Finding], dict[str, Any] | None]:
    try:
        [values], [counts] = _evaluated(grades, run)
    except RunsUnfit as unfit:
        found = Finding(name="no_common_topic", severity="defect", text=str(unfit).rstrip("."))
        return [found, *_similar_names("topic", sorted({*grades.topics, *run.topics}))], None
    found_all = []
    if counts.n_missing:
        text = (
            f"{count_of(counts.n_missing, 'topic')} of {grades.path.name} without a list: left out "
            "of means unless -c is given, so that skipping hard topics helps"
        )
        found_all.append(
            Finding(name="missing_topics", severity="defect", text=text, n=counts.n_missing)
        )
    if counts.n_foreign:
        text = f"{count_of(counts.n_foreign, 'topic')} that {grades.path.name} does not judge"
        found_all.append(
            Finding(name="foreign_topics", severity="note", text=text, n=counts.n_foreign)
        )
    facts = {"qrels": grades.path.name, "judged": values.mean.value, "n_topics": counts.n_topics}
    return found_all, plain_values(facts)


def _evaluated(grades: RelevanceGrades, run: Run) -> tuple[Any, Any]:
    evaluation = evaluate_runs(grades, [run], Settings(measures=(JUDGED,)))
    return evaluation.results, evaluation.runs


def audit_assessors(path: Path, n_lines: int, *, confidence: float = 0.95) -> AuditedFile | None:
    """Grades of several assessors; None where it is something else, or has a fault as that too."""
    try:
        grades = read_assessors(path)
    except TrecFileFaults:
        return None
    topics = sorted({topic for one in grades.values() for topic in one.topics}, key=str.encode)
    sets = label_sets(grades, topics)
    agreement = assessors_agree(sets, confidence)
    documents, n_judges = _judges(sets)
    n_twice = int((n_judges > 1).sum())
    facts = {
        "n_topics": len(topics),
        "n_documents": documents,
        "n_assessors": len(grades),
        "n_judged_by_several": n_twice,
        "agreement": {name: agreement[name] for name in ("overlap", "alpha")},
    }
    said = Finding(
        name="several_assessors",
        severity="note",
        text=f"column 2 names {count_of(len(grades), 'assessor')}, and {n_twice:,} of "
        f"{count_of(documents, 'document')} have several grades (qrels_jg): {_agreement(agreement)}"
        "; it is not read as qrels, so merge them by a rule first",
        n=n_twice,
        of=documents,
    )
    return AuditedFile(
        path, "assessors", n_lines, n_rows=int(n_judges.sum()), findings=(said,), facts=facts
    )


def _judges(sets: LabelSets) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    pair, _number, _grade = sets.judgments()
    documents, counts = np.unique(pair, return_counts=True)
    return len(documents), counts


def _agreement(record: dict[str, dict[str, float | str | None]]) -> str:
    alpha, overlap = record["alpha"], record["overlap"]
    if alpha["value"] is None:
        return f"Krippendorff's alpha is undefined ({alpha['reason']})"
    said = f"Krippendorff's alpha {alpha['value']:.3f}"
    return said if overlap["value"] is None else f"{said}, overlap {overlap['value']:.3f}"
