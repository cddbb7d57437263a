import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from django.core.paginator import Paginator
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.label_uploads import (
    LEFT_OUT,
    WORDS,
    LabelSettings,
    QuestionOverride,
)
from annotation.models import Upload
from annotation.readers.drafts import Fault
from annotation.readers.tool_exports.recognition import (
    ARGILLA,
    DOCCANO,
    LABEL_STUDIO,
    MTURK,
    POOLS,
    POTATO,
    TABLE,
    pattern_example,
    uses_of,
)
from annotation.score_settings import (
    LONGEST_SIGNATURE,
    ScoreSettings,
    ScoreUse,
)

TOOL_NAMES = {
    LABEL_STUDIO: gettext_lazy("Label Studio: JSON, JSON-MIN or CSV"),
    ARGILLA: gettext_lazy("Argilla: records as JSON, or a dataset of them"),
    POTATO: gettext_lazy("Potato: user_state.json, or the annotation output"),
    DOCCANO: gettext_lazy("doccano: an annotator's JSONL or CSV, or the zip of them"),
    MTURK: gettext_lazy("Mechanical Turk: the results file of a batch"),
    POOLS: gettext_lazy("Mechanical Turk: targets with their pools, as in Fashion-AlterEval"),
    "qualtrics": gettext_lazy("Qualtrics: responses, with three header rows"),
    "surveymonkey": gettext_lazy("SurveyMonkey: all responses, with two header rows"),
    "google-forms": gettext_lazy("Google Forms: responses as CSV"),
    "otree": gettext_lazy("oTree: the table of all apps, or that of one"),
    "prolific": gettext_lazy("Prolific: AI Task Builder responses, or the demographic export"),
    "prodigy": gettext_lazy("Prodigy: what db-out writes"),
    "inception": gettext_lazy("INCEpTION: a project's zip, UIMA CAS JSON or WebAnno TSV"),
    "pearmut": gettext_lazy("Pearmut: annotations of campaigns"),
    "langfuse": gettext_lazy("Langfuse: scores"),
    "phoenix": gettext_lazy("Phoenix: annotations"),
    "langsmith": gettext_lazy("LangSmith: feedback"),
    "alt-test": gettext_lazy("Alternative annotator test: JSON with labels by annotator"),
    TABLE: gettext_lazy("A table of labels: CSV, Excel, JSON Lines, Parquet"),
}
SHORT_NAMES = {
    LABEL_STUDIO: "Label Studio",
    ARGILLA: "Argilla",
    POTATO: "Potato",
    DOCCANO: "doccano",
    MTURK: "Mechanical Turk",
    POOLS: gettext_lazy("targets and their pools, from Mechanical Turk"),
    "qualtrics": "Qualtrics",
    "surveymonkey": "SurveyMonkey",
    "google-forms": "Google Forms",
    "otree": "oTree",
    "prolific": "Prolific",
    "prodigy": "Prodigy",
    "inception": "INCEpTION",
    "pearmut": "Pearmut",
    "langfuse": "Langfuse",
    "phoenix": "Phoenix",
    "langsmith": "LangSmith",
    "alt-test": gettext_lazy("the alternative annotator test"),
    TABLE: gettext_lazy("a table"),
}
LEVEL_NAMES = {
    "nominal": gettext_lazy("categories"),
    "ordinal": gettext_lazy("ordered levels"),
    "interval": gettext_lazy("numbers"),
    "ratio": gettext_lazy("numbers from zero"),
    WORDS: gettext_lazy("words, of which nothing is computed"),
    LEFT_OUT: gettext_lazy("not imported"),
}
REPEATS_NAMES = {
    "refuse": gettext_lazy("refuse the file"),
    "first": gettext_lazy("keep the first answer"),
    "last": gettext_lazy("keep the last answer"),
    "mean": gettext_lazy("keep the mean (numbers only)"),
    "majority": gettext_lazy("keep the most frequent answer"),
}
MISSING_NAMES = {
    "words": gettext_lazy("empty cells, and words such as NA, N/A, None, null and NaN"),
    "empty": gettext_lazy("empty cells only"),
}
LONGEST_WORDING, MOST_QUESTIONS, ITEMS_SHOWN = 1000, 200, 3
# Readers name the options of a command; a page has other words for them.
IN_PAGE_WORDS = (
    (r"say --level \S+=nominal; if words, --written \S+\.", gettext_lazy("choose that below.")),
    (r"say --written \S+\.", gettext_lazy("choose that below.")),
    (r"Choose an answer with --repeats", gettext_lazy("Choose below which answer counts")),
    (r"--repeats mean needs", gettext_lazy("The mean needs")),
    (r"If it is text, say --written \S+\.", gettext_lazy("If it is text, choose “words” for it.")),
    (
        r"Leave the question out with --leave-out \S+\.",
        gettext_lazy("Choose “not imported” for it."),
    ),
    (
        r"--merge-categories counts them as one\.",
        gettext_lazy("“Merge categories that look alike” counts them as one."),
    ),
    (r"say --answers with a pattern, such as", gettext_lazy("give their pattern below, such as")),
    (r"\(--repeats ", "("),
    (r"Name them with --value", gettext_lazy("Choose them as “Answer”")),
    (r"--value names others\.", gettext_lazy("Choose others as “Answer”.")),
    (r"with --item", gettext_lazy("as “Item”")),
    (r"with --system", gettext_lazy("as “System”")),
    (r"the pattern of --answers", gettext_lazy("the pattern of answers")),
    (r"with --value", gettext_lazy("as “Answer”")),
)


@dataclass(frozen=True)
class QuestionRow:
    n: int
    question: dict[str, Any]
    override: QuestionOverride

    @property
    def scale(self) -> str:
        if self.question.get("categories"):
            n_more = self.question["n_categories"] - len(self.question["categories"])
            return ", ".join(self.question["categories"]) + (f" … (+{n_more})" if n_more else "")
        if "low" in self.question:
            return f"{self.question['low']:g}–{self.question['high']:g}"
        return ""

    @property
    def level(self) -> str:
        return str(LEVEL_NAMES.get(self.question.get("level", ""), ""))


def labels_context(upload: Upload, page: str = "") -> dict[str, Any]:
    settings, summary = LabelSettings.of(upload.mapping), upload.summary
    items = [_item(item) for item in summary.get("items", ())]
    return {
        "settings": settings,
        "sentences": [_in_page_words(each) for each in upload.reading_sentences],
        "tools": [(name, label, name == settings.tool) for name, label in TOOL_NAMES.items()],
        "tool_name": SHORT_NAMES.get(settings.tool, ""),
        "pattern": "Answer.{question}_{system}"
        if settings.tool == MTURK
        else pattern_example(settings.tool),
        "has_cells": settings.tool in (MTURK, TABLE) or bool(pattern_example(settings.tool)),
        "is_of_pools": settings.tool == POOLS,
        "uses": [(use.value, use.label) for use in uses_of(settings.tool)],
        "fields": [
            (n, column, settings.uses.get(column["name"], ""))
            for n, column in enumerate(upload.columns)
        ],
        "levels": list(LEVEL_NAMES.items()),
        "repeats": list(REPEATS_NAMES.items()),
        "missing": list(MISSING_NAMES.items()),
        "questions": [
            QuestionRow(n, question, settings.questions.get(question["name"], QuestionOverride()))
            for n, question in enumerate(summary.get("questions", ())[:MOST_QUESTIONS])
        ],
        "summary": summary,
        "sentence": labels_sentence(summary) if summary else "",
        "annotators": list(enumerate(summary.get("annotators", ()), start=1)),
        "problems": settings.problems(),
        "faults": [
            replace(fault, problem=_in_page_words(fault.problem))
            for fault in (Fault(**each) for each in upload.faults)
        ],
        "shown": Paginator(items, ITEMS_SHOWN).get_page(page),
    }


def labels_sentence(summary: dict[str, Any]) -> str:
    n = summary["n_items"]
    items = ngettext("%(n)s item", "%(n)s items", n) % {"n": f"{n:,}"}
    n = summary["n_annotators"]
    people = ngettext("%(n)s annotator", "%(n)s annotators", n) % {"n": f"{n:,}"}
    n = sum(question["is_read"] for question in summary["questions"])
    questions = ngettext("%(n)s question", "%(n)s questions", n) % {"n": f"{n:,}"}
    n = summary["n_answers"]
    return _("{answers} of {people} to {questions} about {items}").format(
        answers=ngettext("%(n)s answer", "%(n)s answers", n) % {"n": f"{n:,}"},
        people=people,
        questions=questions,
        items=items,
    )


def _item(item: dict[str, Any]) -> dict[str, Any]:
    letters = (ascii_uppercase[n % 26] for n in range(len(item["candidates"])))
    return item | {"candidates": list(zip(letters, item["candidates"], strict=True))}


def _in_page_words(text: str) -> str:
    for pattern, words in IN_PAGE_WORDS:
        text = re.sub(pattern, str(words), text)
    return text


def posted_labels(upload: Upload, data: Any) -> dict[str, Any]:
    known = LabelSettings.of(upload.mapping)
    tool = data.get("tool", "")
    if tool in TOOL_NAMES and tool != known.tool:
        return {"tool": tool}
    return LabelSettings(
        tool=known.tool,
        uses=_posted_uses(upload, data, uses_of(known.tool)),
        answers=data.get("answers", "").strip()[:200],
        questions=_posted_questions(upload, data),
        keeps_names="keep-names" in data,
        repeats=_choice(data, "repeats", REPEATS_NAMES),
        missing=_choice(data, "missing", MISSING_NAMES),
        categories="merged" if "merge-categories" in data else "as-written",
    ).plain


def _posted_uses(upload: Upload, data: Any, allowed: Sequence[str]) -> dict[str, str]:
    return {
        column["name"]: use
        for n, column in enumerate(upload.columns)
        if (use := data.get(f"use-{n}", "")) in list(allowed)
    }


def _choice(data: Any, name: str, names: Mapping[str, Any]) -> Any:
    value = data.get(name, "")
    return value if value in names else next(iter(names))


def _posted_questions(upload: Upload, data: Any) -> dict[str, QuestionOverride]:
    questions = {}
    for n, question in enumerate(upload.summary.get("questions", ())[:MOST_QUESTIONS]):
        level = data.get(f"level-{n}", "")
        low, high = data.get(f"low-{n}", "").strip(), data.get(f"high-{n}", "").strip()
        override = QuestionOverride(
            level=level if level in LEVEL_NAMES else "",
            low=low if _is_scale(low, high) else "",
            high=high if _is_scale(low, high) else "",
            wording=data.get(f"wording-{n}", "").strip()[:LONGEST_WORDING],
        )
        if override != QuestionOverride():
            questions[question["name"]] = override
    return questions


def _is_scale(low: str, high: str) -> bool:
    try:
        return -1e15 <= float(low) < float(high) <= 1e15
    except ValueError:
        return False


def scores_context(upload: Upload, page: str = "") -> dict[str, Any]:
    settings, summary = ScoreSettings.of(upload.mapping), upload.summary
    used = [column["name"] for column in upload.columns if column["name"] in settings.uses]
    return {
        "settings": settings,
        "uses": [(use.value, use.label) for use in ScoreUse],
        "fields": [
            (n, column, settings.uses.get(column["name"], ""))
            for n, column in enumerate(upload.columns)
        ],
        "summary": summary,
        "sentence": scores_sentence(summary) if summary else "",
        "metrics": [
            row
            | {"is_lower": row["metric"] in settings.lower}
            | {end: "" if row[end] is None else f"{row[end]:.4g}" for end in ("least", "most")}
            for row in summary.get("metrics", ())
        ],
        "policies": [
            (name, label, [(each, labels[each]) for each in values], getattr(settings, name))
            for name, label, values, labels in _policies()
        ],
        "problems": settings.problems(),
        "faults": [Fault(**each) for each in upload.faults],
        "used": used,
        "rows": [
            (line, [cells.get(name, "") for name in used]) for line, cells, _csv in upload.sample
        ],
    }


def _policies() -> list[tuple[str, str, tuple[str, ...], dict[str, str]]]:
    refuse = _("refuse the file")
    repeats = {
        "refuse": refuse,
        "first": _("the first counts"),
        "last": _("the last counts"),
        "mean": _("their mean counts"),
        "majority": _("the most frequent counts"),
    }
    missing = {
        "words": _("NA, null and other words, and empty cells"),
        "empty": _("only empty cells"),
    }
    unmatched = {"refuse": refuse, "leave-out": _("leave the rows out")}
    return [
        ("missing", _("Missing scores"), tuple(missing), missing),
        ("repeats", _("Repeated scores"), tuple(repeats), repeats),
        ("unmatched", _("Unknown items or candidates"), tuple(unmatched), unmatched),
    ]


def scores_sentence(summary: dict[str, Any]) -> str:
    n = summary["n_scores"]
    scores = ngettext("%(n)s score", "%(n)s scores", n) % {"n": f"{n:,}"}
    n = summary["n_metrics"]
    return _("{scores} of {metrics}").format(
        scores=scores, metrics=ngettext("%(n)s metric", "%(n)s metrics", n) % {"n": f"{n:,}"}
    )


def posted_scores(upload: Upload, data: Any) -> dict[str, Any]:
    uses = _posted_uses(upload, data, list(ScoreUse))
    known = {row["metric"] for row in upload.summary.get("metrics", ())}
    lower = tuple(sorted(known & set(data.getlist("lower"))))
    signature = data.get("signature", "").strip()[:LONGEST_SIGNATURE]
    chosen = {
        name: value
        for name, _label, values, _labels in _policies()
        if (value := data.get(name)) in values
    }
    return ScoreSettings(uses=uses, lower=lower, signature=signature, **chosen).plain
