"""Tasks of a study, which the Design page offers first, and the templates behind them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.utils.functional import cached_property
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django_stubs_ext import StrPromise

from annotation.models import Study
from annotation.pairs import ItemSizes, item_sizes, with_pairs
from annotation.protocols.records import Pairs, ProtocolDocument
from annotation.protocols.templates import read_protocol, template_names


@dataclass(frozen=True)
class Task:
    """`templates` begin with the one that stands for the task."""

    name: str
    title: StrPromise
    detail: StrPromise
    templates: tuple[str, ...]
    # Kinds of the first question by which a protocol has this task.
    kinds: tuple[str, ...]


TASKS = (
    Task(
        "rate",
        gettext_lazy("Rate responses"),
        gettext_lazy("Likert points or a slider"),
        ("likert_agreement", "style_ratings", "e2e_ratings", "practised_ratings", "golden_answers"),
        ("likert", "line", "number", "short_text", "long_text"),
    ),
    Task(
        "pairs",
        gettext_lazy("Compare pairs"),
        gettext_lazy("All or balanced pairs of responses"),
        ("preference",),
        ("preference",),
    ),
    Task(
        "rank",
        gettext_lazy("Rank"),
        gettext_lazy("Full order, or best and worst"),
        ("best_worst",),
        ("best_worst", "ranking"),
    ),
    Task(
        "select",
        gettext_lazy("Select alternatives"),
        gettext_lazy("Tick what would also do"),
        ("alternatives", "outcomes"),
        ("selection",),
    ),
    Task(
        "classify",
        gettext_lazy("Classify"),
        gettext_lazy("One or more categories"),
        ("graded_relevance", "switching"),
        ("category", "categories", "yes_no"),
    ),
)
# Tasks that compare, with the least number of responses of an item.
COMPARED = {"pairs": 2, "rank": 3}
# What is written for a study stays when another task is chosen, unless a template wrote it.
WRITTEN = ("title", "instructions", "consent")


def task_of(document: ProtocolDocument) -> Task:
    if document.pairs is not None:
        return TASKS[1]
    kind = document.questions[0].kind if document.questions else ""
    return next((task for task in TASKS if kind in task.kinds), TASKS[0])


@cache
def _shipped() -> list[ProtocolDocument]:
    return [read_protocol(name) for name in template_names()]


def begin_task(
    document: ProtocolDocument, name: str, earlier: Iterable[ProtocolDocument] = ()
) -> ProtocolDocument:
    """The document with the questions of that task, and with the texts and rules that it has.

    The questions are those of the first of the `earlier` documents with the task, so that trying
    another task loses none; else those of a template.
    """
    task = next((task for task in TASKS if task.name == name), TASKS[0])
    before = next((each for each in earlier if task_of(each) == task), None)
    template = before or read_protocol(task.templates[0])
    return replace(
        template,
        **{
            name: getattr(document, name)
            for name in WRITTEN
            if getattr(document, name)
            and all(getattr(document, name) != getattr(each, name) for each in _shipped())
        },
        language=document.language,
        direction=document.direction,
        display=document.display,
        comment=document.comment,
        qualifications=replace(document.qualifications, tests=(), practice=None),
        completion=document.completion,
        holding_flags=document.holding_flags,
    )


@dataclass(frozen=True)
class TaskChoices:
    study: Study
    document: ProtocolDocument

    @cached_property
    def sizes(self) -> ItemSizes:
        return item_sizes(self.study)

    @property
    def on_page(self) -> tuple[int, int]:
        """The least and the most candidates of one page."""
        if self.document.pairs is not None:
            return 2, 2
        return self.sizes.least, self.sizes.most

    @property
    def suggested(self) -> Task:
        name = "select" if self.study.kind == Study.Kind.ALTERNATIVES else "rate"
        return next(task for task in TASKS if task.name == name)

    @property
    def sentence(self) -> str:
        n, least, most = self.sizes.n_items, self.sizes.least, self.sizes.most
        if not n:
            return _("Import items to see which tasks fit them.")
        size = str(least)
        if most != least:
            size = _("%(least)d to %(most)d") % {"least": least, "most": most}
        return _("Your file has %(items)s with %(each)s. Suggested: %(task)s.") % {
            "items": ngettext("%(n)s item", "%(n)s items", n) % {"n": f"{n:,}"},
            "each": ngettext("%(size)s response each", "%(size)s responses each", most)
            % {"size": size},
            "task": self.suggested.title,
        }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The `problem` is why the items do not fit the task; "" if they do."""
        chosen = task_of(self.document)
        return [
            {"task": task, "is_chosen": task == chosen, "problem": self._problem(task)}
            for task in TASKS
        ]

    def _problem(self, task: Task) -> str:
        is_of_alternatives = self.study.kind == Study.Kind.ALTERNATIVES
        if is_of_alternatives and task.name != "select":
            return _("Not for a study of alternatives")
        if not is_of_alternatives and task.name == "select":
            return _("Needs items with a target and alternatives")
        needed = COMPARED.get(task.name, 0)
        if self.sizes.n_items and self.sizes.least < needed:
            return _("Needs %(n)d responses per item") % {"n": needed}
        return ""

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Designs of pairs, with their HITs; none if items have no more than one pair."""
        if task_of(self.document).name != "pairs" or self.sizes.most < 3:
            return []
        own = self.document.pairs
        balanced = own if own is not None and own.design == "balanced" else Pairs("balanced")
        of_all, of_balanced = (self.sizes.n_pairs(each) for each in (Pairs(), balanced))
        each_item = ngettext("%(n)d pair per item", "%(n)d pairs per item", balanced.per_item)
        each_item %= {"n": balanced.per_item}
        return [
            {
                "name": "all",
                "title": gettext_lazy("All pairs"),
                "is_chosen": own is not None and own.design == "all",
                "detail": _("Each response with each other of its item. %(n)s HITs.")
                % {"n": f"{of_all:,}"},
            },
            {
                "name": "balanced",
                "title": gettext_lazy("Balanced pairs"),
                "is_chosen": own is not None and own.design == "balanced",
                "detail": _("%(pairs)s; each pair of systems equally often. %(n)s HITs.")
                % {"pairs": each_item, "n": f"{of_balanced:,}"},
            },
        ]


def change_task(
    study: Study,
    document: ProtocolDocument,
    name: str,
    design: str,
    earlier: Iterable[ProtocolDocument] = (),
) -> ProtocolDocument:
    """The document with that task. Of pairs, items of three candidates and more have a design."""
    if name != task_of(document).name:
        document = begin_task(document, name, earlier)
    if name != "pairs" or item_sizes(study).most < 3:
        return with_pairs(document, None) if document.pairs is not None else document
    own = document.pairs
    if own is not None and own.design == design:
        return document
    return with_pairs(document, Pairs("balanced" if design == "balanced" else "all"))
