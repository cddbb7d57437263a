"""What a number is computed from and by which rules, on one line."""

from collections.abc import Mapping
from typing import Any

from validation.analysis.settings import Settings

# As much of the input's hash as tells two inputs of a study apart.
DIGEST_CHARACTERS = 12
RULES = ("round", "judgments", "ratings", "aggregation", "undefined", "unparsed")
KEY = ("question", "scope", "system", "level", "coefficient", "setting", "choice")
METRICS = {"metric": "signature", "metric_a": "signature_a", "metric_b": "signature_b"}


def number_signature(
    kind: str, record: object, settings: Settings, fingerprint: str, **instead: object
) -> str:
    """The signature of a record's value: its key, its rules, its interval and its input.

    `instead` are fields that stand for, or beside, the record's own.
    """
    fields = _Fields(record, instead)
    own = _pairs(_key(fields) | _drawn(fields))
    # A number of a varied report was computed with that one setting changed.
    varied = {fields["setting"]: fields["choice"]} if fields["setting"] else {}
    return "|".join([kind, *own, shared_rules(settings, fingerprint, varied)])


def plain_signature(kind: str, **fields: object) -> str:
    """The signature of a number that no validation's rules touch."""
    return "|".join([kind, *_pairs(fields)])


def shared_rules(
    settings: Settings, fingerprint: str, varied: Mapping[str, object] | None = None
) -> str:
    """What the signatures of one report end in."""
    rules: dict[str, object] = {name: getattr(settings, name) for name in RULES}
    if settings.labels:
        rules["labels"] = ",".join(map(str, settings.labels))
    return "|".join(_pairs(rules | dict(varied or {}) | {"input": fingerprint[:DIGEST_CHARACTERS]}))


class _Fields:
    """A record's fields by name; one that it does not have is None."""

    def __init__(self, record: object, instead: Mapping[str, object]) -> None:
        self.record = record
        self.instead = instead

    def __getitem__(self, name: str) -> Any:
        return self.instead[name] if name in self.instead else getattr(self.record, name, None)


def _pairs(fields: Mapping[str, object]) -> list[str]:
    return [f"{name}:{value}" for name, value in fields.items() if value not in (None, "")]


def _key(fields: _Fields) -> dict[str, object]:
    metrics = {name: fields[signature] for name, signature in METRICS.items()}
    return {**{name: fields[name] for name in KEY}, "condition": fields["by"], **metrics}


def _drawn(fields: _Fields) -> dict[str, object]:
    """How the interval, or the p, was drawn."""
    if fields["test"] is not None:
        return {"test": fields["test"], "draws": fields["n_draws"], "seed": fields["seed"]}
    if fields["n_splits"] is not None:
        return {"splits": fields["n_splits"], "seed": fields["seed"]}
    if fields["ci_method"] not in (None, "none"):
        drawn = {"ci": fields["ci_method"], "confidence": fields["confidence"]}
        return drawn | {"draws": fields["n_resamples"], "seed": fields["seed"]}
    return {}
