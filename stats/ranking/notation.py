"""Measures by name, as ir_measures spells them (`nDCG@10`, `P(rel=2)@5`), or trec_eval (`map`)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from error_codes import InvalidValue
from stats.arguments import Floats, require
from stats.ranking import measures
from stats.ranking.judged_lists import JudgedLists

NAME = re.compile(r"(?P<name>\w+?)\s*(?:\((?P<settings>[^()]*)\))?\s*(?:@(?P<cutoff>[0-9]+))?")
OF_TREC_EVAL = {
    "map": "AP",
    "map_cut": "AP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "recip_rank": "RR",
    "mrr": "RR",
    "rprec": "Rprec",
    "bpref": "Bpref",
    "infap": "infAP",
    "success": "Success",
    "hit": "Success",
    "precision": "P",
    "recall": "R",
}


@dataclass(frozen=True)
class Kind:
    function: Callable[..., Floats]
    settings: tuple[str, ...]
    cutoff: str = "optional"


GRADED = ("rel", "judged_only")
KINDS = {
    "nDCG": Kind(measures.ndcg, ("dcg", "judged_only")),
    "RR": Kind(measures.reciprocal_rank, GRADED),
    "Success": Kind(measures.success, GRADED, "needed"),
    "P": Kind(measures.precision, GRADED, "needed"),
    "R": Kind(measures.recall, GRADED),
    "Rprec": Kind(measures.r_precision, GRADED, "none"),
    "AP": Kind(measures.average_precision, GRADED),
    "Bpref": Kind(measures.binary_preference, ("rel",), "none"),
    "infAP": Kind(measures.inferred_average_precision, ("rel",), "none"),
    "RBP": Kind(measures.rank_biased_precision, ("p", "rel", "max_rel"), "none"),
    "RBPresidual": Kind(measures.rank_biased_residual, ("p",), "none"),
    "Judged": Kind(measures.judged, (), "needed"),
    "Pooled": Kind(partial(measures.judged, pooled=True), (), "needed"),
}
DEFAULTS = {"rel": 1, "judged_only": False, "p": 0.8, "dcg": "log2"}
ARGUMENTS = {"rel": "relevant_from", "max_rel": "highest_grade", "p": "p", "dcg": "dcg"}


@dataclass(frozen=True)
class Measure:
    """A measure with its settings.

    Attributes
    ----------
    name : str
        In full, the settings that are not by default among it: ``nDCG(dcg='exp-log2')@10``.
    kind : str
        Its family, such as "nDCG".
    cutoff : int or None
        Ranks that count.
    settings : tuple of (str, value)
        In ir_measures' words: ``rel``, ``judged_only``, ``dcg``, ``p``, ``max_rel``.
    """

    kind: str
    cutoff: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings)
        within = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.kind}({settings}){within}" if settings else f"{self.kind}{within}"

    @property
    def is_binary(self) -> bool:
        return self.kind == "Success"

    def values(self, lists: JudgedLists) -> Floats:
        arguments = {ARGUMENTS[name]: value for name, value in self.settings if name in ARGUMENTS}
        if self.cutoff is not None:
            arguments["cutoff"] = self.cutoff
        condensed = dict(self.settings).get("judged_only", False)
        return KINDS[self.kind].function(lists.condensed if condensed else lists, **arguments)


def measure(text: str) -> Measure:
    """The measure of a name.

    Parameters
    ----------
    text : str
        Such as ``nDCG@10``, ``nDCG(dcg='exp-log2')@10``, ``RR(judged_only=True)``,
        ``P(rel=2)@5``, ``RBP(p=0.95)``, or trec_eval's ``ndcg_cut_10``, ``map``.

    Returns
    -------
    Measure
        Settings that say what holds anyway are left out.

    Raises
    ------
    ValueError
        If there is no such measure, or a setting or cutoff does not fit it.

    References
    ----------
    S. MacAvaney, C. Macdonald and I. Ounis (2022). Streamlining evaluation with ir-measures.
    ECIR 2022, 305-310.

    Examples
    --------
    >>> measure("ndcg_cut_10").name, measure("P( rel = 2 )@5").name, measure("AP(rel=1)").name
    ('nDCG@10', 'P(rel=2)@5', 'AP')
    """
    parts = NAME.fullmatch(_in_new_words(text.strip()))
    known = {name.lower(): name for name in KINDS}
    kind = known.get(parts["name"].lower()) if parts else None
    if parts is None or kind is None:
        raise InvalidValue(
            f"measure must be one of {', '.join(map(_example, KINDS))}, not {text!r}",
            code="unknown_measure",
        )
    cutoff = int(parts["cutoff"]) if parts["cutoff"] else None
    require(cutoff != 0, f"the cutoff of {text!r} must be at least 1", code="cutoff_out_of_range")
    require(
        KINDS[kind].cutoff != "needed" or cutoff is not None,
        f"{kind} needs a cutoff, as in {kind}@10",
        code="cutoff_missing",
    )
    require(
        KINDS[kind].cutoff != "none" or cutoff is None,
        f"{kind} has no cutoff",
        code="cutoff_unused",
    )
    given = [each for each in (parts["settings"] or "").split(",") if each.strip()]
    settings = dict(_setting(kind, each) for each in given)
    require(
        not {"rel", "max_rel"} <= settings.keys(),
        "RBP takes rel or max_rel, not both",
        code="rel_and_max_rel",
    )
    new = {name: value for name, value in settings.items() if value != DEFAULTS.get(name)}
    return Measure(kind, cutoff, tuple(sorted(new.items())))


def _in_new_words(text: str) -> str:
    text = re.sub(r"^(\w+)_([0-9]+)$", r"\1@\2", text)
    return re.sub(r"^\w+", lambda name: OF_TREC_EVAL.get(name[0].lower(), name[0]), text)


def _example(kind: str) -> str:
    return f"{kind}@10" if KINDS[kind].cutoff == "needed" else kind


def _setting(kind: str, text: str) -> tuple[str, Any]:
    name, _, value = (part.strip() for part in text.partition("="))
    if name not in KINDS[kind].settings:
        allowed = ", ".join(KINDS[kind].settings) or "none"
        raise InvalidValue(
            f"{kind} has no setting {name!r}; its settings: {allowed}", code="unknown_setting"
        )
    return name, READERS[name](name, value)


def _boolean(name: str, value: str) -> bool:
    require(
        value.lower() in ("true", "false"),
        f"{name} must be True or False, not {value!r}",
        code=f"unknown_{name}",
    )
    return value.lower() == "true"


def _grade(name: str, value: str) -> int:
    require(
        value.isascii() and value.isdecimal() and 1 <= int(value) <= 127,
        f"{name} must be a whole number from 1 to 127, not {value!r}",
        code=f"{name}_out_of_range",
    )
    return int(value)


def _share(name: str, value: str) -> float:
    try:
        number = float(value) if value.isascii() else 0.0
    except ValueError:
        number = 0.0
    require(
        0 < number < 1,
        f"{name} must lie between 0 and 1, not {value!r}",
        code=f"{name}_out_of_range",
    )
    return number


def _gain(name: str, value: str) -> str:
    known = get_args(measures.Gain)
    require(
        (plain := value.strip("'\"")) in known,
        f"{name} must be one of {', '.join(known)}, not {plain!r}",
        code=f"unknown_{name}",
    )
    return plain


READERS: dict[str, Callable[[str, str], Any]] = {
    "rel": _grade,
    "max_rel": _grade,
    "judged_only": _boolean,
    "p": _share,
    "dcg": _gain,
}
