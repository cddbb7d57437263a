"""Uploaded scores as their page shows them, and what the page says of them."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Upload
from annotation.readers.report import Fault
from annotation.score_settings import (
    LONGEST_SIGNATURE,
    ScoreSettings,
    ScoreUse,
)


def scores_context(upload: Upload, page: str = "") -> dict[str, Any]:
    settings, summary = ScoreSettings.of(upload.mapping), upload.summary
    columns = [column["name"] for column in upload.columns]
    used = [name for name in columns if name in settings.uses]
    return {
        "settings": settings,
        "uses": [(use.value, use.label) for use in ScoreUse],
        "fields": [
            (n, column, settings.uses.get(column["name"], ""))
            for n, column in enumerate(upload.columns)
        ],
        "summary": summary,
        "sentence": sentence_of(summary) if summary else "",
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


def sentence_of(summary: dict[str, Any]) -> str:
    n = summary["n_scores"]
    scores = ngettext("%(n)s score", "%(n)s scores", n) % {"n": f"{n:,}"}
    n = summary["n_metrics"]
    metrics = ngettext("%(n)s metric", "%(n)s metrics", n) % {"n": f"{n:,}"}
    return _("{scores} of {metrics}").format(scores=scores, metrics=metrics)


def posted_scores(upload: Upload, data: Any) -> dict[str, Any]:
    uses = {}
    for n, column in enumerate(upload.columns):
        if (use := data.get(f"use-{n}", "")) in list(ScoreUse):
            uses[column["name"]] = use
    known = {row["metric"] for row in upload.summary.get("metrics", ())}
    lower = tuple(sorted(known & set(data.getlist("lower"))))
    signature = data.get("signature", "").strip()[:LONGEST_SIGNATURE]
    chosen = {
        name: value
        for name, _label, values, _labels in _policies()
        if (value := data.get(name)) in values
    }
    return ScoreSettings(uses=uses, lower=lower, signature=signature, **chosen).plain
