from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from error_codes import CodedText
from presentation.numbers import count_of, plain_values
from presentation.progress import Progress, silently
from retrieval.evaluated_runs import Settings
from retrieval.evaluation import lists_of_run, positions, require_scale, run_names
from retrieval.exceptions import RunsUnfit
from retrieval.reuse.pools import CalibratedMean, MachineComparison, Row, Sample
from retrieval.reuse.reusability import OF_THE_POOL
from retrieval.trec_files import RelevanceGrades, Run
from stats.arguments import Flags, Floats, Integers, sum_by
from stats.inference.powered_means import PredictionPowered, prediction_powered_mean
from stats.ranking import JudgedLists, Measure
from stats.ranking.judged_lists import within
from stats.ranking.rank_similarity import tau_b
from stats.ranking.topic_means import LEAST_OTHERS, compare_over_topics, mean_over_topics

NO_SUM = "not a sum over documents: it takes a sample of whole topics"


@dataclass(frozen=True)
class _Labels:
    human: RelevanceGrades
    machine: RelevanceGrades
    # People's grade of each of the machine's judgments, -1 if there is none.
    grades: Integers
    # Topics in which people judged everything that the machine judged.
    whole: Flags

    @property
    def some(self) -> Flags:
        has = np.zeros(len(self.machine.topics), dtype=bool)
        has[self.machine.topic[self.grades >= 0]] = True
        return has


def compare_machine(
    runs: Sequence[Run],
    human: RelevanceGrades,
    machine: RelevanceGrades,
    sharing: Sequence[str],
    settings: Settings,
    *,
    sample: Sample | None = None,
    progress: Progress = silently,
) -> MachineComparison:
    """Runs under people's labels of a random sample and a machine's labels of all.

    The sample is of whole topics or of (topic, document) labels: of topics, unless told, where
    people judged all that the machine judged in each topic they have. `sharing` names the runs
    whose systems share the machine's model.
    """
    names = run_names(runs)
    of_file = {run.path.name: name for run, name in zip(runs, names, strict=True)}
    shared = [of_file.get(run, run) for run in sharing]
    if unknown := [run for run in shared if run not in names]:
        raise RunsUnfit(
            f"{unknown[0]}, said to share the machine's model, is none of the runs.",
            code="run_unknown",
        )
    measures = [one for one in settings.measures if one.kind not in OF_THE_POOL]
    for grades in (human, machine):
        require_scale(grades, measures)
    labels = _labels(human, machine)
    if sample is None:
        sample = "topics" if (labels.whole == labels.some).all() else "labels"
    tables, estimates = [], []
    for name, run in progress(zip(names, runs, strict=True), len(runs)):
        scored = _Scored(labels, run, settings)
        rows = [scored.calibrated(name, one, sample) for one in measures]
        tables.append([scored.pair(one, sample) for one in measures])
        estimates += rows
    is_shared = np.isin(names, shared)
    biases = [
        _bias(one, [row[at] for row in tables], is_shared, settings)
        for at, one in enumerate(measures)
    ]
    return MachineComparison(
        qrels=human.path.name,
        machine=machine.path.name,
        sharing=tuple(shared),
        sample=sample,
        n_topics_people=len(human.topics),
        n_topics_machine=len(machine.topics),
        n_topics_both=int(labels.some.sum()),
        estimates=tuple(estimates),
        biases=tuple(each for each in biases if each is not None),
        notes=(
            *_notes(labels, sample, is_shared),
            *_notes_of_few(estimates, sample),
            *_notes_of_sampling(estimates),
        ),
    )


def _labels(human: RelevanceGrades, machine: RelevanceGrades) -> _Labels:
    span = len(machine.documents)
    topic = positions(human.topics, machine.topics)[human.topic]
    document = positions(human.documents, machine.documents)[human.document]
    known = (topic >= 0) & (document >= 0)
    pairs = machine.topic * span + machine.document
    order = np.argsort(pairs)
    found = np.searchsorted(pairs, topic[known] * span + document[known], sorter=order)
    at = order[np.minimum(found, len(order) - 1)]
    same = pairs[at] == topic[known] * span + document[known]
    grades = np.full(len(pairs), -1, dtype=np.intp)
    grades[at[same]] = human.grade[known][same]
    labelled = machine.grade >= 0
    n_topics = len(machine.topics)
    n_machine = np.bincount(machine.topic[labelled], minlength=n_topics)
    n_both = np.bincount(machine.topic[labelled & (grades >= 0)], minlength=n_topics)
    if not n_both.any():
        raise RunsUnfit(
            f"{human.path.name} and {machine.path.name} judge no document of a topic both.",
            code="nothing_in_common",
        )
    return _Labels(human, machine, grades, (n_machine > 0) & (n_both == n_machine))


@dataclass(frozen=True)
class Cells:
    """The documents of a run that the machine judged, where the measure looks.

    The mean of all cells is the run's mean over topics; `people` is NaN where they were not
    asked.
    """

    topic: Integers
    machine: Floats
    people: Floats
    n_topics: int

    def by_topic(self) -> tuple[Floats, Floats]:
        """Of the documents that both judged, whose means are those of the labelled cells."""
        both = ~np.isnan(self.people)
        has = np.zeros(self.n_topics, dtype=bool)
        has[np.unique(self.topic)] = True
        share = has.sum() / max(int(both.sum()), 1)
        machine, people = (
            np.where(has, share * sum_by(self.topic[both], each[both], self.n_topics), np.nan)
            for each in (self.machine, self.people)
        )
        return machine, people


class _Scored:
    def __init__(self, labels: _Labels, run: Run, settings: Settings) -> None:
        self.labels, self.settings = labels, settings
        machine, human = labels.machine, labels.human
        ties, single = settings.ties, settings.single_precision
        position = positions(run.topics, machine.topics)
        self.by_machine = lists_of_run(machine, run, position, single)[ties]
        position = positions(run.topics, human.topics)
        self.by_people = lists_of_run(human, run, position, single)[ties]
        self.of_human = positions(human.topics, machine.topics)

    def machine_values(self, one: Measure) -> Floats:
        return _of_listed(self.by_machine, one, self.settings)

    def people_values(self, one: Measure) -> Floats:
        """By the machine's topics; NaN too where people did not judge the topic."""
        values = np.full(len(self.labels.machine.topics), np.nan)
        known = self.of_human >= 0
        values[self.of_human[known]] = _of_listed(self.by_people, one, self.settings)[known]
        return np.where(self.labels.some, values, np.nan)

    def pair(self, one: Measure, sample: Sample) -> tuple[Floats, Floats] | None:
        if sample == "topics":
            machine, people = self.machine_values(one), self.people_values(one)
        elif is_sum_of_documents(one):
            machine, people = self._cells(one).by_topic()
        else:
            return None
        both = ~(np.isnan(machine) | np.isnan(people))
        return np.where(both, machine, np.nan), np.where(both, people, np.nan)

    def _cells(self, one: Measure) -> Cells:
        return cells_of(
            self.by_machine, one, self.labels.grades, of_missing=self.settings.of_missing
        )

    def calibrated(self, name: str, one: Measure, sample: Sample) -> CalibratedMean:
        confidence = self.settings.confidence
        machine = self.machine_values(one)
        here = machine[~np.isnan(machine)]
        pair = self.pair(one, sample)
        gaps = (np.empty(0), np.empty(0)) if pair is None else pair
        both = ~np.isnan(gaps[0])
        people = gaps[1][both]
        binary = one.is_binary and sample == "topics"
        powered = self._powered(one, machine, sample)
        return CalibratedMean(
            run=name,
            measure=one,
            machine=mean_over_topics(here, confidence=confidence, binary=one.is_binary),
            people=mean_over_topics(people, confidence=confidence, binary=binary),
            gap=compare_over_topics(gaps[0][both], people, test="t", confidence=confidence),
            powered=None if powered is None else _within_scale(powered),
            n_others=self._n_others(one, sample),
            reason=NO_SUM if powered is None else _reason(powered),
        )

    def _n_others(self, one: Measure, sample: Sample) -> int:
        if sample == "topics":
            labelled = self.people_values(one)
        elif is_sum_of_documents(one):
            labelled = self._cells(one).people
        else:
            return 0
        labelled = labelled[~np.isnan(labelled)]
        return len(labelled) - int(np.unique(labelled, return_counts=True)[1].max(initial=0))

    def _powered(self, one: Measure, machine: Floats, sample: Sample) -> PredictionPowered | None:
        confidence = self.settings.confidence
        if sample == "topics":
            listed = ~np.isnan(machine)
            return prediction_powered_mean(
                self.people_values(one)[listed], machine[listed], confidence=confidence
            )
        if not is_sum_of_documents(one):
            return None
        cells = self._cells(one)
        return prediction_powered_mean(
            cells.people, cells.machine, clusters=cells.topic, confidence=confidence
        )


def _of_listed(lists: JudgedLists, one: Measure, settings: Settings) -> Floats:
    return np.where(lists.n_listed > 0, one.values(lists), settings.of_missing)


def _within_scale(powered: PredictionPowered) -> PredictionPowered:
    low, high = max(powered.ci_low, min(0.0, powered.value)), powered.ci_high
    return replace(powered, ci_low=low, ci_high=min(high, max(1.0, powered.value)))


def _reason(powered: PredictionPowered) -> str | None:
    return None if powered.reason is None else str(powered.reason)


def _bias(
    one: Measure,
    pairs: Sequence[tuple[Floats, Floats] | None],
    is_shared: Flags,
    settings: Settings,
) -> Row | None:
    """Whether the machine rates systems that share its model higher than it rates others.

    The gaps are the machine's value less people's, means over the runs of either kind;
    `difference` is the first less the second over the topics that both judged. Taus are of the
    systems' order by people and by the machine on those topics, with all runs and without those
    that share the model. None without runs of both kinds, and for measures that the sample does
    not give.
    """
    if not is_shared.any() or is_shared.all() or any(pair is None for pair in pairs):
        return None
    machine, people = (np.array([pair[side] for pair in pairs if pair]) for side in (0, 1))
    both = ~np.isnan(machine).any(axis=0)
    machine, people = machine[:, both], people[:, both]
    gap = machine - people
    sharing, others = gap[is_shared].mean(axis=0), gap[~is_shared].mean(axis=0)
    difference = compare_over_topics(
        sharing,
        others,
        test="randomisation",
        confidence=settings.confidence,
        rng=settings.seed,
    )
    means = machine.mean(axis=1), people.mean(axis=1)
    return plain_values(
        {
            "measure": one.name,
            "gap_sharing": float(sharing.mean()),
            "gap_others": float(others.mean()),
            "difference": difference.delta,
            "ci_low": difference.ci_low,
            "ci_high": difference.ci_high,
            "p": difference.p,
            "n_topics": difference.n_topics,
            "tau": _tau(*means),
            "tau_without": _tau(*(each[~is_shared] for each in means)),
            "reason": difference.reason,
        }
    )


def _tau(machine: Floats, people: Floats) -> float:
    return tau_b(people, machine) if len(people) > 1 else float("nan")


def _notes_of_few(estimates: Sequence[CalibratedMean], sample: Sample) -> Iterator[str]:
    judged = f"{'topics' if sample == 'topics' else 'documents'} that people judged"
    for row in estimates:
        if row.powered is None or row.powered.reason or row.n_others >= LEAST_OTHERS:
            continue
        most = f"all but {row.n_others}" if row.n_others else "all"
        yield CodedText(
            f"{row.measure.name} of {row.run}: {most} {judged} have the same "
            "value, which makes its calibrated interval a rough guide",
            code="few_other_values",
        )


def _notes_of_sampling(estimates: Sequence[CalibratedMean]) -> Iterator[str]:
    known = [row.powered for row in estimates if row.powered is not None]
    n = sum(any(note.code == "labels_not_random" for note in one.notes) for one in known)
    if n:
        yield CodedText(
            f"{n} of {count_of(len(known), 'calibrated mean')}: the machine's values of what "
            "people judged differ from its other values, unlike a random sample",
            code="labels_not_random",
        )


def _notes(labels: _Labels, sample: Sample, is_shared: Flags) -> Iterator[str]:
    if sample == "topics":
        yield CodedText(
            "calibrated means hold where the topics that people judged are a random sample of "
            "the machine's",
            code="sample_of_topics",
        )
    else:
        yield CodedText(
            "calibrated means hold where the documents that people judged are a random sample of "
            "the machine's; people's column weighs each of them alike",
            code="sample_of_labels",
        )
    if n := len(labels.human.topics) - int(labels.some.sum()):
        yield CodedText(
            f"{count_of(n, 'topic')} of people's are not among the machine's, and not counted",
            code="topics_not_shared",
        )
    if labels.some.all() and sample == "topics":
        yield CodedText(
            "people judged every topic: nothing is left for the machine to say", code="all_judged"
        )
    if not is_shared.any():
        yield CodedText("no run is named as sharing the machine's model", code="none_shares_model")


SUMS = ("P", "RBP")


def is_sum_of_documents(one: Measure) -> bool:
    return one.kind in SUMS and not dict(one.settings).get("judged_only", False)


def cells_of(
    lists: JudgedLists, one: Measure, people: Integers, *, of_missing: float = nan
) -> Cells:
    """The cells of lists with the machine's grades; `people` has theirs of its judgments.

    Topics without a list count where `of_missing` is 0, and not where it is NaN.
    """
    weights = _weights(lists, one)
    counted = (lists.grade >= 0) & (weights > 0)
    weight, topic = weights[counted], lists.topic[counted]
    grades = people[lists.judgment[counted]]
    n_topics = lists.n_topics if of_missing == 0 else int((lists.n_listed > 0).sum())
    scale = len(topic) / max(n_topics, 1)
    machine = scale * weight * _gains(lists.grade[counted], one)
    of_people = np.where(grades >= 0, scale * weight * _gains(grades, one), np.nan)
    return Cells(topic, machine, of_people, lists.n_topics)


def _weights(lists: JudgedLists, one: Measure) -> Floats:
    if one.kind == "P":
        assert one.cutoff is not None
        return np.asarray(within(lists.rank, one.cutoff) / np.float64(one.cutoff))
    p = dict(one.settings).get("p", 0.8)
    return np.asarray((1 - p) * p ** (lists.rank - 1.0))


def _gains(grades: Integers, one: Measure) -> Floats:
    settings = dict(one.settings)
    if "max_rel" in settings:
        return np.asarray(np.maximum(grades, 0) / settings["max_rel"])
    return np.asarray(grades >= settings.get("rel", 1), dtype=np.float64)
