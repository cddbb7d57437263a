"""What is different between two reports' contents."""

from collections.abc import Mapping
from typing import Any

Content = Mapping[str, Any]
PLACE = ("question", "scope", "by", "level", "coefficient", "metric", "signature")


def what_changed(before: Content, now: Content) -> dict[str, list[dict[str, Any]]]:
    """Settings and score sets that differ, and every correlation that moved, came or went."""
    return {
        "settings": _settings(before["settings"], now["settings"]),
        "score_sets": _score_sets(before["inputs"], now["inputs"]),
        "correlations": _correlations(before, now),
    }


def _settings(before: Content, now: Content) -> list[dict[str, Any]]:
    return [
        {"setting": name, "before": before.get(name), "now": now.get(name)}
        for name in now
        if before.get(name) != now[name]
    ]


def _score_sets(before: Content, now: Content) -> list[dict[str, Any]]:
    was, is_now = (
        {(one["metric"], one["signature"]): one for one in inputs["score_sets"]}
        for inputs in (before, now)
    )
    found = []
    for metric, signature in dict.fromkeys([*was, *is_now]):
        old, new = was.get((metric, signature)), is_now.get((metric, signature))
        if old is None or new is None:
            change = "added" if old is None else "removed"
        elif old["digest"] != new["digest"]:
            change = "changed"
        else:
            continue
        counts = {
            "n_before": old["n_scores"] if old else 0,
            "n_now": new["n_scores"] if new else 0,
        }
        found.append({"metric": metric, "signature": signature, "change": change, **counts})
    return found


def _correlations(before: Content, now: Content) -> list[dict[str, Any]]:
    """Values before and now; None on one side alone where a row is new, gone or undefined."""
    was, is_now = (
        {tuple(row[name] for name in PLACE): row for row in content["correlations"]}
        for content in (before, now)
    )
    found = []
    for place in dict.fromkeys([*is_now, *was]):
        old, new = (rows.get(place, {}) for rows in (was, is_now))
        values = old.get("value"), new.get("value")
        if values[0] == values[1] and bool(old) == bool(new):
            continue
        delta = None if None in values else values[1] - values[0]
        ranks = {"rank_before": old.get("rank"), "rank_now": new.get("rank")}
        named = dict(zip(PLACE, place, strict=True))
        found.append(named | {"before": values[0], "now": values[1], "delta": delta} | ranks)
    return found
