from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _, ngettext
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.assignment_facts import AssignmentPrice, assignment_price
from annotation.models import Candidate, Question, Study
from annotation.pages.agreement import newest_alphas
from annotation.pages.downloads import job_of
from annotation.pages.stages import (
    stage_facts,
    study_for,
    study_page,
)
from annotation.result_kinds.agreement import QuestionCoefficient
from annotation.study_facts import RESULTS, Raters, raters_of, simulation_notice
from console.access import may
from console.chart_values import Axis, Span
from console.templatetags.numbers import coefficient, interval, p_text, percent
from error_codes import CodedText
from presentation.numbers import group_values, join_names
from results.models import Result
from validation.analysis.human_results import (
    ALL,
    CONDITION,
    COUNTS,
    PROTOCOL,
    UNFLAGGED,
    Bin,
    LowestCandidate,
    QuestionRecord,
)
from validation.analysis.records import RatedSystemRecord
from validation.documents.rated_systems import Verdict, is_told_apart, verdict_of
from validation.documents.terms import CUT
from validation.pages.result_sentences import (
    Scale,
    Standing,
)
from validation.result_kinds.validation import (
    HumanResultsKind,
    StoredHumanResults,
    current_human_results,
)


@dataclass(frozen=True)
class Distribution:
    system: str
    bars: list[dict[str, Any]]

    @property
    def words(self) -> str:
        return "; ".join(f"{bar['label']}: {bar['share']}" for bar in self.bars if bar["n"])


def distributions_of(bins: Sequence[Bin], systems: Sequence[str]) -> list[Distribution]:
    of_system = group_values((one.system, one) for one in bins)
    order = {system: at for at, system in enumerate(systems)}
    names = sorted(of_system, key=lambda name: order.get(name, len(order)))
    return [Distribution(name, _bars(of_system[name])) for name in names]


def _bars(bins: Sequence[Bin]) -> list[dict[str, Any]]:
    total = sum(one.n for one in bins) or 1
    most = max(one.n for one in bins) or 1
    width = 100 / len(bins)
    return [
        {
            "label": one.label,
            "n": one.n,
            "share": percent(one.n / total),
            "x": f"{at * width + width * 0.1:.2f}%",
            "width": f"{width * 0.8:.2f}%",
            "y": f"{100 - 100 * one.n / most:.2f}%",
            "height": f"{100 * one.n / most:.2f}%",
            # Where its share begins in a bar of all shares, the share, and its color of five.
            "left": f"{100 * sum(each.n for each in bins[:at]) / total:.2f}%",
            "part": f"{100 * one.n / total:.2f}%",
            "step": 1 + round(4 * at / max(len(bins) - 1, 1)),
        }
        for at, one in enumerate(bins)
    ]


@dataclass(frozen=True)
class SystemRow:
    record: RatedSystemRecord
    value: str
    interval: str
    span: Span | None

    @property
    def place(self) -> str:
        low, high = self.record.rank_low, self.record.rank_high
        return f"{low}" if low == high else _("%(low)d to %(high)d") % {"low": low, "high": high}


@dataclass(frozen=True)
class HumanResultsView:
    results: StoredHumanResults
    displayed: QuestionRecord
    study_question: Question | None
    # Krippendorff's alpha of all submissions and, if some are flagged, without those.
    alphas: list[QuestionCoefficient]
    price: AssignmentPrice | None = None

    @property
    def questions(self) -> list[QuestionRecord]:
        return self.results.questions

    @property
    def version(self) -> Result:
        return self.results.version

    @property
    def question(self) -> str:
        return self.displayed.question

    @property
    def has_numbers(self) -> bool:
        return self.displayed.measure != COUNTS

    @cached_property
    def scale(self) -> Scale:
        categories = self.study_question.categories if self.study_question else []
        yes = str(categories[1]) if len(categories) == 2 else _("yes")
        one = self.displayed
        return Scale(one.measure, one.scale_low, one.scale_high, yes)

    @property
    def axis(self) -> Axis:
        if self.scale.is_share:
            return Axis(0.0, 1.0, is_share=True)
        return Axis(self.displayed.scale_low, self.displayed.scale_high)

    @property
    def end_labels(self) -> tuple[str, str]:
        if self.study_question is None or self.scale.is_share:
            return "", ""
        return self.study_question.low_label, self.study_question.high_label

    def _part(self, scope: str, by: str = "") -> Standing:
        systems = self.results.systems.get((self.question, scope, by), [])
        pairs = self.results.pairs.get((self.question, scope, by), [])
        return Standing(self.scale, systems, pairs, self._raters)

    @cached_property
    def _raters(self) -> Raters:
        return raters_of(self.results.study)

    @cached_property
    def standing(self) -> Standing:
        return self._part(ALL)

    @property
    def answer(self) -> CodedText:
        return self.standing.answer if self.standing.systems else self._most_chosen

    @property
    def _most_chosen(self) -> CodedText:
        counts: dict[str, int] = {}
        for one in self._bins:
            counts[one.label] = counts.get(one.label, 0) + one.n
        total = sum(counts.values())
        if not total or self.has_numbers:
            return CodedText(_("Nothing can be said of this question yet."), "nothing")
        label = max(counts, key=lambda name: counts[name])
        values = {"label": label, "share": percent(counts[label] / total), "n": f"{total:,}"}
        values["raters"] = self._raters.subject
        return CodedText(
            _("%(raters)s choose “%(label)s” most often: in %(share)s of %(n)s judgments.")
            % values,
            "most_chosen",
        )

    @property
    def is_ranked(self) -> bool:
        return len(self.standing.systems) > 1

    @property
    def items_with(self) -> str:
        n = self.displayed.n_items_with
        if n is None:
            return ""
        total = self.displayed.n_items
        return ngettext(
            "%(n)s of %(total)s item has at least one candidate to which most annotators say "
            "“%(yes)s”.",
            "%(n)s of %(total)s items have at least one candidate to which most annotators say "
            "“%(yes)s”.",
            total,
        ) % {"n": f"{n:,}", "total": f"{total:,}", "yes": self.scale.yes}

    @property
    def disagreement(self) -> str:
        firsts = {
            name: systems[0].system
            for (name, scope, _by), systems in self.results.systems.items()
            if scope == ALL and len(systems) > 1
        }
        if len(set(firsts.values())) < 2:
            return ""
        named = [
            _("%(system)s on %(question)s") % {"system": system, "question": name}
            for name, system in firsts.items()
        ]
        return _("The questions disagree on what comes first: %(named)s.") % {
            "named": join_names(named)
        }

    @cached_property
    def rows(self) -> list[SystemRow]:
        return [
            SystemRow(
                one,
                self.scale.value(one.mean),
                self.scale.interval(one),
                self.axis.span(one.mean, one.ci_low, one.ci_high),
            )
            for one in self.standing.systems
        ]

    @property
    def note_of_cuts(self) -> str:
        return _(CUT) if any(map(self.scale.is_cut, self.standing.systems)) else ""

    @cached_property
    def verdict(self) -> Verdict | None:
        systems, pairs = self.standing.systems, self.standing.pairs
        if len(systems) < 2 or systems[0].mean is None:
            return None
        return verdict_of(
            self.question,
            list(systems),
            list(pairs),
            self.price,
            scale=self.scale.ends,
            raters=self._raters,
        )

    @property
    def pairs(self) -> list[dict[str, Any]]:
        order = {one.system: at for at, one in enumerate(self.standing.systems)}
        rows = []
        for pair in self.standing.pairs:
            is_turned = order.get(pair.a, 0) > order.get(pair.b, 0)
            first, second = (pair.b, pair.a) if is_turned else (pair.a, pair.b)
            rows.append(
                {
                    "first": first,
                    "second": second,
                    "difference": self.scale.difference(pair, -1.0 if is_turned else 1.0),
                    "p": "–" if pair.p_adjusted is None else p_text(pair.p_adjusted),
                    "is_decided": is_told_apart(pair, pair.a) or is_told_apart(pair, pair.b),
                }
            )
        return rows

    @cached_property
    def _bins(self) -> list[Bin]:
        return [
            Bin(**row) for row in self.results.record["bins"] if row["question"] == self.question
        ]

    @property
    def distributions(self) -> list[Distribution]:
        return distributions_of(self._bins, [one.system for one in self.standing.systems])

    @property
    def parts(self) -> list[dict[str, Any]]:
        titles = {
            UNFLAGGED: ngettext(
                "Without the %(n)s flagged submission",
                "Without the %(n)s flagged submissions",
                self.results.record["n_flagged"],
            )
            % {"n": f"{self.results.record['n_flagged']:,}"},
            CONDITION: _("By condition"),
            PROTOCOL: _("By version of the protocol"),
        }
        return [table for scope in titles if (table := self._part_table(scope, titles[scope]))]

    def _part_table(self, scope: str, title: str) -> dict[str, Any] | None:
        names = [
            by for name, at, by in self.results.systems if (name, at) == (self.question, scope)
        ]
        if not names or not self.standing.systems:
            return None
        parts = [self.standing, *(self._part(scope, by) for by in names)]
        labels = {UNFLAGGED: [_("Without them")], CONDITION: names}
        versions = [_("Version %(n)s") % {"n": by} for by in names]
        return {
            "title": title,
            "finding": _finding(self.standing, parts[1:], names),
            "columns": [_("All"), *labels.get(scope, versions)],
            "rows": [
                (one.system or _("all candidates"), [_cell(part, one.system) for part in parts])
                for one in self.standing.systems
            ],
        }

    @cached_property
    def lowest(self) -> list[tuple[LowestCandidate, Candidate]]:
        rows = [
            LowestCandidate(**row)
            for row in self.results.record["lowest"]
            if row["question"] == self.question
        ]
        stored = Candidate.objects.filter(
            item__study=self.results.study,
            item__key__in={row.item for row in rows},
            key__in={row.candidate for row in rows},
        )
        texts = stored.select_related("item").only("key", "text", "item__key")
        candidates = {(one.item.key, one.key): one for one in texts}
        named = [(row, candidates.get((row.item, row.candidate))) for row in rows]
        return [(row, candidate) for row, candidate in named if candidate is not None]

    @property
    def agreement_text(self) -> str:
        texts = [f"{coefficient(row.value)} {interval(row)}".strip() for row in self.alphas]
        if not texts:
            return _("not computed yet")
        if len(texts) == 1:
            return _("alpha %(all)s") % {"all": texts[0]}
        return _("alpha %(all)s; without flagged work %(rest)s") % {
            "all": texts[0],
            "rest": texts[1],
        }


def view_questions(
    study: Study, version: Result, price: AssignmentPrice | None = None
) -> dict[str, HumanResultsView]:
    results = StoredHumanResults(study, version)
    asked = {one.name: one for one in study.questions.all()}
    alphas = newest_alphas(study, results.record["round"])
    ordered = sorted(alphas, key=lambda row: not row.with_flagged)
    by_question = group_values((row.question, row) for row in ordered)
    return {
        one.question: HumanResultsView(
            results, one, asked.get(one.question), by_question[one.question], price
        )
        for one in results.questions
    }


def _cell(part: Standing, system: str) -> str:
    one = next((row for row in part.systems if row.system == system), None)
    if one is None:
        return "–"
    scale = part.scale
    return f"{scale.value(one.mean)} {scale.interval(one)}".strip()


def _finding(whole: Standing, parts: Sequence[Standing], names: Sequence[str]) -> str:
    order = [row.system for row in whole.systems]
    moved = [
        name for part, name in zip(parts, names, strict=True)
        if [row.system for row in part.systems] != order
    ]  # fmt: skip
    if len(order) < 2:
        return ""
    if not moved:
        first = parts[0].pair(order[0], order[1]) if len(parts) == 1 else None
        if first is None or first.delta is None:
            return _("same order")
        size = whole.scale.difference(first, 1.0 if first.a == order[0] else -1.0)
        return _("same order; lead %(size)s") % {"size": size}
    if len(parts) == 1:
        return _("another order")
    return _("another order in %(names)s") % {"names": join_names(list(moved[:3]))}


@require_safe
def results(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    context: dict[str, Any] = {}
    if study.n_judgments:
        current = current_human_results(study)
        if current is None:
            context["job"] = job_of(request, study, RESULTS)
            # Computed at once, where there was no job to wait for.
            current = None if context["job"] else current_human_results(study)
        # Until the new ones are there, those of the judgments before.
        version = current or HumanResultsKind().list_results(study).first()
        context |= {"view": _view(study, request, version), "is_stale": current is None}
        context["simulated"] = simulation_notice(study)
        facts = stage_facts(study)
        context["has_scores"] = facts["has_scores"]
        context |= _to_launch(context["view"], facts["n_items_without_hit"])
    return study_page(request, study, "validation/results", context)


def _view(study: Study, request: HttpRequest, version: Result | None) -> HumanResultsView | None:
    if version is None:
        return None
    price = assignment_price(study) if may(request, Permission.VIEW_MONEY) else None
    views = view_questions(study, version, price)
    name = request.GET.get("question") or next(iter(views), None)
    if views and name not in views:
        raise Http404(f"There is no question {name}.")
    return views.get(name or "")


def _to_launch(view: HumanResultsView | None, n_unlaunched: int) -> dict[str, int]:
    """Items to launch, and items to add first, to separate the systems."""
    n_more = view.verdict.n_more_items if view and view.verdict else 0
    n_to_launch = min(n_more, n_unlaunched)
    return {"n_to_launch": n_to_launch, "n_to_add": n_more - n_to_launch}
