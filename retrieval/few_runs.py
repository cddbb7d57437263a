"""What rankings of few runs can say: little, and how little."""

from __future__ import annotations

from math import factorial

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from error_codes import CodedText

FEW_RUNS = 6
"""Below, tau and rankings say so little that a sentence says how little."""


def few_runs_sentence(n_runs: int) -> str:
    """How coarse tau is, and how often rankings agree by chance; empty where runs are enough."""
    if not 2 <= n_runs < FEW_RUNS:
        return ""
    n_pairs = n_runs * (n_runs - 1) // 2
    pairs = ngettext("{n} pair", "{n} pairs", n_pairs).format(n=n_pairs)
    return CodedText(
        _(
            "{n} runs say little: they have {pairs}, tau-b moves by {step} with one swap, and two "
            "rankings that have nothing to do with each other are the same once in {orders} times. "
            "Look at the differences of the runs rather than at tau."
        ).format(n=n_runs, pairs=pairs, step=f"{2 / n_pairs:.2f}", orders=factorial(n_runs)),
        code="few_runs",
    )
