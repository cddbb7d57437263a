"""A switching study's judgments as decisions, and what they say of simulated users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import Count
from django.utils.translation import gettext as _

from annotation.frames import judgment_frame
from annotation.models import Study
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy
from simulation.recorded_dialogues import dialogues_of, origin_of
from simulation.switching import (
    CHOICES,
    SwitchingStudy,
    UserFit,
    compare_users,
    switching_study,
)
from simulation.users import MetaUser

if TYPE_CHECKING:
    import pandas as pd


DEFAULT_USERS = ("base", "prob:0:0.75", "prob:0:0.75,mode=released")
DECISION, TAKEN = "decision", "taken"


def decisions_of(study: Study) -> pd.DataFrame:
    """A row for each answer that was not rejected: who decided what, at which recorded turn."""
    turns = _turns(study)
    frame = judgment_frame(study).astype({"item": str, "annotator": str, "candidate": str})
    chosen = frame[(frame["question"] == TAKEN) & (frame["value"] == 1)]
    key = ["item", "annotator", "round"]
    taken = chosen[[*key, "candidate"]].rename(columns={"candidate": "taken"})
    decided = frame[frame["question"] == DECISION][[*key, "value"]]
    rows = decided.merge(taken, on=key, how="left").merge(turns, on="item")
    rows["choice"] = [CHOICES[int(value)] for value in rows["value"]]
    rows["nearest"] = rows["taken"] == rows["nearest"]
    return rows.rename(columns={"annotator": "worker"}).drop(columns="value")


def _turns(study: Study) -> pd.DataFrame:
    """Where each item comes from, which its workers did not see."""
    import pandas as pd

    dialogues = dialogues_of(study, DialogueStudy.Kind.SWITCHING)
    rows = dialogues.turns.annotate(n_alternatives=Count("item__candidates")).values(
        *("item__key", "target", "turn", "delta", "recommender", "nearest", "n_alternatives")
    )
    return pd.DataFrame(list(rows)).rename(columns={"item__key": "item"})


def switching_result(
    study: Study,
    decisions: pd.DataFrame,
    users: Sequence[MetaUser],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[SwitchingStudy, list[UserFit]]:
    """The model of a study's decisions, and the users from the truest on."""
    if decisions.empty:
        raise DialoguesUnfit(
            _("Study '{study}' has no answers. Publish it and collect what workers answer.").format(
                study=study.slug
            )
        )
    result = switching_study(decisions, confidence=confidence, seed=seed)
    fits = compare_users(decisions, users, confidence=confidence, seed=seed) if users else []
    return result, fits


def switching_record(
    study: Study,
    decisions: pd.DataFrame,
    users: Sequence[MetaUser],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """The model, its probabilities, and the users from the truest on; with the study's origin."""
    dialogues = dialogues_of(study, DialogueStudy.Kind.SWITCHING)
    result, fits = switching_result(study, decisions, users, confidence=confidence, seed=seed)
    return {
        "study": study.slug,
        "origin": origin_of(dialogues),
        "n_decisions": len(decisions),
        "choices": {name: int((decisions["choice"] == name).sum()) for name in CHOICES},
        "confidence": confidence,
        **result.record(),
        "users": [fit.record() for fit in fits],
    }
