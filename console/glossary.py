"""What the pages' terms of the field mean: a name, a sentence, a reference."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Term:
    title: str | Promise
    meaning: str | Promise
    reference: str


ALPHA = "krippendorff_alpha"
ICC = "Shrout and Fleiss (1979), Psychological Bulletin 86(2)"
COEFFICIENTS = {
    ALPHA: Term(
        _("Krippendorff's alpha"),
        _(
            "One less observed by expected disagreement, for any number of annotators, missing "
            "judgments and any level of measurement."
        ),
        "Krippendorff (2011), Computing Krippendorff's Alpha-Reliability",
    ),
    "krippendorff_alpha_masi": Term(
        _("Krippendorff's alpha of items (MASI)"),
        _(
            "Alpha of all that an annotator ticked of an item, taken as one set; two sets "
            "are as far "
            "apart as the MASI distance says, and what is counted are items, not candidates."
        ),
        "Passonneau (2006), Measuring Agreement on Set-valued Items (MASI)",
    ),
    "percent_agreement": Term(
        _("Percent agreement"),
        _(
            "The share of pairs of judgments of one candidate that are equal; chance is "
            "not taken off."
        ),
        "Artstein and Poesio (2008), Computational Linguistics 34(4)",
    ),
    "cohen_kappa": Term(
        _("Cohen's kappa"),
        _("Agreement of two annotators beyond what their own shares of each category would give."),
        "Cohen (1960), Educational and Psychological Measurement 20(1)",
    ),
    "cohen_kappa_linear": Term(
        _("Cohen's kappa, linear weights"),
        _("Cohen's kappa where a disagreement counts by its distance in steps."),
        "Cohen (1968), Psychological Bulletin 70(4)",
    ),
    "cohen_kappa_quadratic": Term(
        _("Cohen's kappa, quadratic weights"),
        _("Cohen's kappa where a disagreement counts by the square of its distance."),
        "Cohen (1968), Psychological Bulletin 70(4)",
    ),
    "scott_pi": Term(
        _("Scott's pi"),
        _(
            "Agreement of two annotators beyond what their joint shares of each category "
            "would give."
        ),
        "Scott (1955), Public Opinion Quarterly 19(3)",
    ),
    "fleiss_kappa": Term(
        _("Fleiss' kappa"),
        _("Scott's pi for several annotators, who need not be the same for every candidate."),
        "Fleiss (1971), Psychological Bulletin 76(5)",
    ),
    "conger_kappa": Term(
        _("Conger's kappa"),
        _("Cohen's kappa for several annotators: chance by each one's own shares."),
        "Conger (1980), Psychological Bulletin 88(2)",
    ),
    "gwet_ac1": Term(
        _("Gwet's AC1"),
        _(
            "Agreement beyond chance that stays stable where one category is much the most "
            "frequent."
        ),
        "Gwet (2008), British Journal of Mathematical and Statistical Psychology 61(1)",
    ),
    "gwet_ac2_quadratic": Term(
        _("Gwet's AC2, quadratic weights"),
        _("AC1 where a disagreement counts by the square of its distance."),
        "Gwet (2014), Handbook of Inter-Rater Reliability",
    ),
    "brennan_prediger": Term(
        _("Brennan–Prediger kappa"),
        _("Agreement beyond what choosing among all categories alike would give."),
        "Brennan and Prediger (1981), Educational and Psychological Measurement 41(3)",
    ),
    "icc1": Term(
        _("ICC(1)"),
        _("Share of variance that lies between candidates, where annotators rotate."),
        ICC,
    ),
    "icc1k": Term(_("ICC(1,k)"), _("Reliability of the mean of the annotators in ICC(1)."), ICC),
    "icc2": Term(
        _("ICC(2)"),
        _("Absolute agreement of one annotator drawn from many, all of whom judged everything."),
        ICC,
    ),
    "icc2k": Term(_("ICC(2,k)"), _("Reliability of the mean of the annotators in ICC(2)."), ICC),
    "icc3": Term(
        _("ICC(3)"),
        _("Consistency of these very annotators, whose own levels do not count."),
        ICC,
    ),
    "icc3k": Term(_("ICC(3,k)"), _("Reliability of the mean of the annotators in ICC(3)."), ICC),
}


def title_of(name: str) -> str:
    """A coefficient as people write it; one without an entry, by its code in words."""
    title = COEFFICIENTS.get(name)
    return str(title.title) if title else name.replace("_", " ")


CODE_NAMES: dict[str, str | Promise] = {
    # Why a coefficient, a correlation, a test or a label is undefined.
    "no_labels": _("no labels"),
    "one_annotator": _("one annotator"),
    "no_overlap": _("no overlap"),
    "no_pairable_units": _("no pairable units"),
    "single_item": _("single item"),
    "single_category": _("single category"),
    "not_two_annotators": _("not two annotators"),
    "needs_order": _("needs order"),
    "needs_numbers": _("needs numbers"),
    "incomplete_design": _("incomplete design"),
    "too_many_categories": _("too many categories"),
    "no_item_variance": _("no item variance"),
    "too_few": _("too few"),
    "too_few_labels": _("too few labels"),
    "constant_human": _("constant human"),
    "constant_metric": _("constant metric"),
    "constant_items": _("constant items"),
    "constant_ratings": _("constant ratings"),
    "constant_others": _("constant others"),
    "no_defined_item": _("no defined item"),
    "undefined_correlation": _("undefined correlation"),
    "same_metric": _("same metric"),
    "too_few_systems": _("too few systems"),
    "undefined_resamples": _("undefined resamples"),
    "no_spread": _("no spread"),
    # How an interval was computed: agreement is over candidates, which items group.
    "jackknife-t-items": _("jackknife over candidates"),
    "jackknife-t-clusters": _("jackknife over items"),
    "bootstrap-percentile-items": _("bootstrap over candidates"),
    "bootstrap-percentile-clusters": _("bootstrap over items"),
    "asymptotic-normal": _("normal approximation"),
    "linearised-t": _("linearised variance"),
    "analytic-f": _("F distribution"),
    "dirichlet-posterior": _("posterior of the table"),
    "jeffreys": _("Jeffreys"),
    "none": _("none"),
    # How several judgments become one value, and how labels are made.
    "mean": _("mean"),
    "median": _("median"),
    "trimmed_mean": _("trimmed mean"),
    "bias_precision": _("bias precision"),
    "majority": _("majority"),
    "dawid_skene": _("dawid skene"),
    "one_coin": _("one coin"),
    "mace": _("mace"),
    "mace_em": _("mace by maximum likelihood"),
    "glad": _("glad"),
    "zscore": _("zscore"),
}
LEVEL_TITLES: dict[str, str | Promise] = {
    "item": _("Item level"),
    "system": _("System level"),
    "pooled": _("Pooled level"),
}


def code_name(code: object) -> str:
    return str(CODE_NAMES.get(str(code), str(code).replace("_", " ")))
