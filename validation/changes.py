"""What is different between two validations."""

from typing import Any

from validation.analysis.records import CorrelationRecord
from validation.results import Results

KEY = ("question", "scope", "by", "level", "coefficient", "metric", "signature")
Changes = list[dict[str, Any]]


def what_changed(before: Results, now: Results) -> dict[str, Changes]:
    """Settings and score sets that differ, and every correlation that moved, came or went."""
    return {
        "settings": _settings(before, now),
        "score_sets": _score_sets(before, now),
        "correlations": _correlations(before, now),
    }


def _settings(before: Results, now: Results) -> Changes:
    was, is_now = before.settings.content(), now.settings.content()
    return [
        {"setting": name, "before": was.get(name), "now": is_now[name]}
        for name in is_now
        if was.get(name) != is_now[name]
    ]


def _score_sets(before: Results, now: Results) -> Changes:
    was, is_now = (
        {(one.metric, one.signature): one for one in results.inputs.score_sets}
        for results in (before, now)
    )
    changes: Changes = []
    for metric, signature in dict.fromkeys([*was, *is_now]):
        old, new = was.get((metric, signature)), is_now.get((metric, signature))
        if old is None or new is None:
            change = "added" if old is None else "removed"
        elif old.digest != new.digest:
            change = "changed"
        else:
            continue
        counts = {"n_before": old.n_scores if old else 0, "n_now": new.n_scores if new else 0}
        named = {"metric": metric, "signature": signature, "change": change}
        changes.append(named | counts)
    return changes


def _correlations(before: Results, now: Results) -> Changes:
    """Values before and now; None on one side alone where a row is new, gone or undefined."""
    was, is_now = (
        {tuple(getattr(row, n) for n in KEY): row for row in results.rows(CorrelationRecord)}
        for results in (before, now)
    )
    changes: Changes = []
    for key in dict.fromkeys([*is_now, *was]):
        old, new = was.get(key), is_now.get(key)
        first, last = (None if row is None else row.value for row in (old, new))
        if first == last and (old is None) == (new is None):
            continue
        values = {
            "before": first,
            "now": last,
            "delta": None if first is None or last is None else last - first,
            "rank_before": old.rank if old else None,
            "rank_now": new.rank if new else None,
        }
        changes.append(dict(zip(KEY, key, strict=True)) | values)
    return changes
