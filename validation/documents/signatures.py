"""What a number is computed from and by which rules, on one line."""

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]
# As much of the input's hash as tells two inputs of a study apart.
SHOWN = 12
RULES = ("round", "judgments", "ratings", "aggregation", "undefined", "unparsed")


def number_signature(kind: str, record: Record, settings: Record, fingerprint: str) -> str:
    """The signature of a record's value: its place, its rules, its interval and its input."""
    fields = _told(_place(record) | _drawn(record))
    # A number of a varied report was computed with that one setting changed.
    varied = {record["setting"]: record["choice"]} if "setting" in record else {}
    return "|".join([kind, *fields, shared_rules(dict(settings) | varied, fingerprint)])


def plain_signature(kind: str, **fields: Any) -> str:
    """The signature of a number that no validation's rules touch."""
    return "|".join([kind, *_told(fields)])


def shared_rules(settings: Record, fingerprint: str) -> str:
    """What the signatures of one report end in."""
    rules = {name: settings.get(name) for name in RULES}
    return "|".join(_told(rules | {"input": fingerprint[:SHOWN]}))


def _told(fields: Record) -> list[str]:
    return [f"{name}:{value}" for name, value in fields.items() if value not in (None, "")]


def _place(record: Record) -> dict[str, Any]:
    metrics = {
        "metric": record.get("signature"),
        "metric_a": record.get("signature_a"),
        "metric_b": record.get("signature_b"),
    }
    names = ("question", "scope", "system", "level", "coefficient", "setting", "choice")
    return {
        **{name: record.get(name) for name in names},
        "condition": record.get("by"),
        **metrics,
    }


def _drawn(record: Record) -> dict[str, Any]:
    """How the interval, or the p, was drawn."""
    if "test" in record:
        drawn = {"test": record["test"], "draws": record["n_draws"], "seed": record["seed"]}
    elif "n_splits" in record:
        drawn = {"splits": record["n_splits"], "seed": record["seed"]}
    elif record.get("ci_method") not in (None, "none"):
        drawn = {"ci": record["ci_method"], "confidence": record["confidence"]}
        drawn |= {"draws": record["n_resamples"], "seed": record["seed"]}
    else:
        drawn = {}
    return drawn
