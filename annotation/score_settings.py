from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Upload
from annotation.readers.policies import Missing, Policies, Repeats, Unmatched

KIND = "scores"
LONGEST_SIGNATURE = 500


class ScoreUse(TextChoices):
    ITEM = "item", gettext_lazy("Item")
    SYSTEM = "system", gettext_lazy("System")
    CANDIDATE = "candidate", gettext_lazy("Name of the candidate")
    SCORE = "score", gettext_lazy("Scores of a metric")
    METRIC = "metric", gettext_lazy("Name of the metric")
    VALUE = "value", gettext_lazy("Score of the metric in the row")
    SIGNATURE = "signature", gettext_lazy("Signature")
    REASON = "reason", gettext_lazy("Why there is no score")


@dataclass(frozen=True)
class ScoreSettings:
    uses: Mapping[str, str] = field(default_factory=dict)
    lower: tuple[str, ...] = ()
    signature: str = ""
    missing: Missing = "words"
    repeats: Repeats = "refuse"
    unmatched: Unmatched = "refuse"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ScoreSettings:
        return cls(**{**values, "lower": tuple(values.get("lower", ()))})

    @property
    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"lower": list(self.lower)}

    @property
    def policies(self) -> Policies:
        return Policies(missing=self.missing, repeats=self.repeats, unmatched=self.unmatched)

    def columns(self, use: ScoreUse) -> tuple[str, ...]:
        return tuple(name for name, each in self.uses.items() if each == use)

    def signature_for(self, upload: Upload) -> str:
        return self.signature or f"imported|file:{upload.file_name}"

    def problems(self) -> list[str]:
        chosen = Counter(self.uses.values())
        problems = [
            _("Only one column can be “{use}”.").format(use=use.label)
            for use in ScoreUse
            if use != ScoreUse.SCORE and chosen[use] > 1
        ]
        has_system = chosen[ScoreUse.SYSTEM] or chosen[ScoreUse.CANDIDATE]
        scores, metric, value = (
            chosen[use] for use in (ScoreUse.SCORE, ScoreUse.METRIC, ScoreUse.VALUE)
        )
        rules = (
            (not chosen[ScoreUse.ITEM], _("Choose the column that is “Item”.")),
            (not has_system, _("Choose the column that is the system, or the candidate's name.")),
            (
                scores and (metric or value),
                _(
                    "Either columns are a metric's scores each, or a row names its metric; "
                    "not both."
                ),
            ),
            (
                not scores and not (metric and value),
                _("Choose the columns of scores; or those of the metric's name and its score."),
            ),
        )
        return problems + [text for is_broken, text in rules if is_broken]
