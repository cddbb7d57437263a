"""Do people switch so? Decisions of annotators at a turn of recorded dialogues, loss and gain at
random, held against the rules of simulated users.

At a turn each annotator sees the target, the item before and the item now, and keeps the target,
takes another, or leaves. The article's rule has people switch after a loss, the released program's
after a gain: the sign of one coefficient decides between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _

from annotation.frames import judgment_frame
from annotation.models import Study
from presentation.numbers import plain_values
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy
from simulation.recorded_dialogues import dialogues_of, origin_of
from simulation.users import MetaUser
from stats.arguments import Floats, coded_in_order, require_confidence
from stats.inference.mixed_logistic import (
    INTERCEPT,
    LEAST_LEVELS,
    MixedLogistic,
    mixed_logistic,
    undefined_model,
)
from stats.inference.resampled_means import sign_flip_test
from stats.jackknife import effective_freedom, mean_left_out
from stats.libraries import np, pd, scipy
from stats.proportions import clustered_share
from stats.significance.adjustments import holm

BY_MODEL, BY_SHARES = "the model", "shares of decisions"
COLUMNS = ("worker", "target", "turn", "delta", "choice")
CHOICES = ("keep", "switch", "leave")
LEAST_WORKERS = 6


@dataclass(frozen=True)
class Share:
    """A mean with its interval; NaN limits with a reason where there are too few workers."""

    value: float
    ci_low: float
    ci_high: float
    n: int
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        return plain_values(vars(self))


@dataclass(frozen=True)
class SwitchingStudy:
    """What decides whether people switch.

    `model` is logit P(switch) by loss, turn (centred) and their product, with intercepts of
    workers and targets, of those who did not leave. `after_loss` and `after_gain` are its
    probabilities at the mean turn, or, where it is undefined, shares of decisions with an interval
    over workers; `estimated_by` says which. `nearest_excess` is by how much more often switchers
    took the alternative nearest to what was shown than 1 in all alternatives; `leaves` the share
    of decisions to leave, with an interval over workers.
    """

    model: MixedLogistic
    after_loss: Share
    after_gain: Share
    nearest_excess: Share
    leaves: Share

    @property
    def estimated_by(self) -> str:
        return BY_MODEL if self.model.reason is None else BY_SHARES

    def record(self) -> dict[str, Any]:
        return {
            "coefficients": [plain_values(vars(one)) for one in self.model.coefficients],
            "deviations": plain_values(self.model.deviations),
            "reason": self.model.reason,
            "n": self.model.n,
            "levels": self.model.levels,
            "p_switch_estimated_by": self.estimated_by,
            "p_switch_after_loss": self.after_loss.record(),
            "p_switch_after_gain": self.after_gain.record(),
            "nearest_excess": self.nearest_excess.record(),
            "leaves": self.leaves.record(),
        }


def switching_study(
    decisions: pd.DataFrame, *, confidence: float = 0.95, seed: int = 0
) -> SwitchingStudy:
    """The model and shares of decisions, one a row.

    Columns are worker, target, turn (the critique's, from 1), delta (how much nearer the item is to
    the target than the one before), choice (keep, switch or leave) and, of who switched,
    nearest (whether they took the alternative nearest to the item) and n_alternatives.
    """
    require_confidence(confidence)
    _require_columns(decisions)
    stayed = decisions[decisions["choice"] != "leave"]
    model = _model(stayed, confidence)
    return SwitchingStudy(
        model=model,
        after_loss=_p_switch(model, stayed[stayed["delta"] < 0], 1.0, seed),
        after_gain=_p_switch(model, stayed[stayed["delta"] >= 0], 0.0, seed),
        nearest_excess=_nearest_excess(decisions, confidence),
        leaves=_share(decisions["choice"] == "leave", decisions["worker"], confidence),
    )


def _model(stayed: pd.DataFrame, confidence: float) -> MixedLogistic:
    """The model; without turns where they are all the same, and undefined with the reason where
    decisions are too few to tell what they depend on."""
    loss = (stayed["delta"] < 0).astype(float)
    turn = stayed["turn"] - stayed["turn"].mean()
    columns = {"loss": loss, "turn": turn, "loss x turn": loss * turn}
    if stayed["turn"].nunique() == 1:
        columns = {"loss": loss}
    groups = {"worker": stayed["worker"], "target": stayed["target"]}
    if reason := _undecidable(stayed, columns):
        levels = {name: int(column.nunique()) for name, column in groups.items()}
        return undefined_model([INTERCEPT, *columns], levels, len(stayed), confidence, reason)
    return mixed_logistic(stayed["choice"] == "switch", columns, groups, confidence=confidence)


def _undecidable(stayed: pd.DataFrame, columns: Mapping[str, pd.Series[Any]]) -> str | None:
    if stayed.empty:
        return "all who decided left"
    if stayed["worker"].nunique() < LEAST_LEVELS:
        return f"fewer than {LEAST_LEVELS} workers decided to keep or to switch"
    if stayed["target"].nunique() < LEAST_LEVELS:
        return f"fewer than {LEAST_LEVELS} targets"
    if columns["loss"].nunique() == 1:
        return "all turns were losses" if columns["loss"].iloc[0] else "all turns were gains"
    x = np.column_stack([np.ones(len(stayed)), *columns.values()])
    if np.linalg.matrix_rank(x) < x.shape[1]:
        return "losses and gains are of different turns"
    return None


def _p_switch(model: MixedLogistic, stayed: pd.DataFrame, loss: float, seed: int) -> Share:
    if model.reason is None:
        one = model.probability({"loss": loss}, rng=seed)
        return Share(one.value, one.ci_low, one.ci_high, model.n)
    return _share(stayed["choice"] == "switch", stayed["worker"], model.confidence)


def _share(outcome: pd.Series[Any], workers: pd.Series[Any], confidence: float) -> Share:
    share = clustered_share(outcome, workers, confidence=confidence)
    reason = None
    if np.isnan(share.ci_low):
        reason = f"a share of {share.n:,} decisions of one worker" if share.n else "no decisions"
    return Share(share.value, share.ci_low, share.ci_high, share.n, reason)


def _require_columns(decisions: pd.DataFrame) -> None:
    if missing := [name for name in COLUMNS if name not in decisions.columns]:
        raise ValueError(f"decisions must have a column {missing[0]}")
    if unknown := sorted(set(decisions["choice"]) - set(CHOICES)):
        raise ValueError(f"choice must be keep, switch or leave, not {unknown[0]!r}")
    if decisions["delta"].isna().any():
        raise ValueError("delta must not be missing: the first turn has none to show")


def _nearest_excess(decisions: pd.DataFrame, confidence: float) -> Share:
    if not {"nearest", "n_alternatives"} <= set(decisions.columns):
        return Share(np.nan, np.nan, np.nan, 0, "decisions do not say which alternative was taken")
    switched = decisions[decisions["choice"] == "switch"]
    # Where there is one alternative alone, taking it says nothing.
    switched = switched[switched["n_alternatives"] > 1]
    nearest = switched["nearest"].to_numpy(dtype=np.float64)
    chance = 1 / switched["n_alternatives"].to_numpy(dtype=np.float64)
    return share_over_workers(switched["worker"], nearest - chance, confidence)


def share_over_workers(workers: pd.Series[Any], values: Floats, confidence: float) -> Share:
    """Student's t interval with workers as clusters."""
    if not len(values):
        return Share(np.nan, np.nan, np.nan, 0, "no decisions")
    mean = float(values.mean())
    code, distinct = coded_in_order(workers, "worker")
    if len(distinct) < LEAST_WORKERS:
        return Share(mean, np.nan, np.nan, len(values), f"fewer than {LEAST_WORKERS} workers")
    left_out = mean_left_out(values - mean, code)
    freedom = effective_freedom(left_out.effective)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(left_out.variance))
    if not half:
        return Share(mean, np.nan, np.nan, len(values), "all workers decided alike")
    return Share(mean, mean - half, mean + half, len(values))


def switch_probability(user: MetaUser, decisions: pd.DataFrame) -> Floats:
    """How probable a switch is at each decision by a simulated user's rule.

    Decisions do not say which item is the nearest; a user who has the target among the
    alternatives may keep it when its rule says to switch, which is not counted here.
    """
    delta = decisions["delta"].to_numpy(dtype=np.float64)
    is_spared = decisions["turn"].to_numpy() - 1 < user.n_spared
    if user.kind == "base":
        return np.zeros(len(delta))
    if user.kind == "tol":
        return np.where(is_spared, 0.0, 1.0)
    changed = delta < 0 if user.switches_on == "loss" else delta > 0
    if user.on_equal == "switch":
        changed = changed | (delta == 0)
    return np.where(changed & ~is_spared, user.p_switch, 0.0)


@dataclass(frozen=True)
class UserFit:
    """How far a user's rule is from what people did: the mean squared error of its probability.

    `gain` is how much smaller that is than the first user's, with its interval over workers.
    """

    user: str
    brier: float
    gain: Share
    p: float
    p_adjusted: float

    def record(self) -> dict[str, Any]:
        numbers = {"brier": self.brier, "p": self.p, "p_adjusted": self.p_adjusted}
        return {"user": self.user, **plain_values(numbers), "gain": self.gain.record()}


def compare_users(
    decisions: pd.DataFrame,
    users: Sequence[MetaUser],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[UserFit]:
    """The users' rules against people's decisions, the truest first; tests after Holm. None where
    all left, of which rules say nothing.

    Users' settings must not have been chosen by these decisions.
    """
    _require_columns(decisions)
    stayed = decisions[decisions["choice"] != "leave"]
    if stayed.empty:
        return []
    switched = (stayed["choice"] == "switch").to_numpy(dtype=np.float64)
    errors = [(switch_probability(user, stayed) - switched) ** 2 for user in users]
    p = [np.nan, *_tests(stayed["worker"], errors, seed)]
    rows = [
        UserFit(
            user=user.name,
            brier=float(error.mean()),
            gain=share_over_workers(stayed["worker"], errors[0] - error, confidence),
            p=one,
            p_adjusted=float(adjusted),
        )
        for user, error, one, adjusted in zip(users, errors, p, holm(p), strict=True)
    ]
    return sorted(rows, key=lambda row: row.brier)


def _tests(workers: pd.Series[Any], errors: Sequence[Floats], seed: int) -> Iterator[float]:
    for error in errors[1:]:
        gap = errors[0] - error
        yield sign_flip_test(workers, gap, rng=seed) if gap.any() else 1.0


DEFAULT_USERS = ("base", "prob:0:0.75", "prob:0:0.75,mode=released")
DECISION, TAKEN = "decision", "taken"


def decisions_of(study: Study) -> pd.DataFrame:
    """One row per answer that was not rejected."""
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
