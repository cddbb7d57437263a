"""Agreement among annotators: coefficients with intervals, and reasons where undefined."""

from stats.agreement.alpha_sums import jaccard, masi
from stats.agreement.bundle import coefficients_at_level
from stats.agreement.chance_corrected import (
    brennan_prediger,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac2,
    percent_agreement,
    scott_pi,
)
from stats.agreement.cohen import cohen_kappa
from stats.agreement.conger import conger_kappa
from stats.agreement.design import Options
from stats.agreement.icc import icc
from stats.agreement.kappa import pairwise_kappa
from stats.agreement.krippendorff import krippendorff_alpha
from stats.agreement.result import Agreement, CiMethod, Reason
from stats.agreement.specific import category_agreement, item_agreement

__all__ = [
    "Agreement",
    "CiMethod",
    "Options",
    "Reason",
    "brennan_prediger",
    "category_agreement",
    "coefficients_at_level",
    "cohen_kappa",
    "conger_kappa",
    "fleiss_kappa",
    "gwet_ac1",
    "gwet_ac2",
    "icc",
    "item_agreement",
    "jaccard",
    "krippendorff_alpha",
    "masi",
    "pairwise_kappa",
    "percent_agreement",
    "scott_pi",
]
