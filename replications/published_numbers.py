"""Numbers as their authors printed them, which the gallery sets beside those computed here."""

from collections.abc import Mapping

# Table 1 of the LMStyle Benchmark, x 100, by metric and coefficient; the last is printed as the
# mean of the four.
STYLES = ("Formal", "Informal", "Positive", "Negative", "Overall")
_TABLE_1 = {
    ("StyleStrength", "pearson"): (36.6, 22.5, 16.6, 32.1, 27.0),
    ("BLEU", "pearson"): (-11.4, 1.5, 11.4, 5.1, 1.65),
    ("SBERT", "pearson"): (11.3, 8.2, 20.0, 28.7, 17.1),
    ("ChatGPT", "pearson"): (27.0, 21.3, 28.9, 15.2, 23.1),
    ("NLL", "pearson"): (34.2, 11.6, 27.5, 42.1, 28.9),
    ("StyleStrength", "kendall"): (32.2, 16.8, 17.8, 19.1, 21.5),
    ("BLEU", "kendall"): (-6.1, 4.9, 7.8, 3.1, 2.4),
    ("SBERT", "kendall"): (7.3, 6.2, 20.2, 26.4, 15.0),
    ("ChatGPT", "kendall"): (20.7, 17.4, 26.1, 16.4, 20.2),
    ("NLL", "kendall"): (25.3, 19.0, 28.3, 34.1, 26.7),
}
LMSTYLE_TABLE_1: Mapping[tuple[str, str], Mapping[str, float]] = {
    key: dict(zip(STYLES, values, strict=True)) for key, values in _TABLE_1.items()
}

# UniEval on Topical-Chat over 360 responses: Pearson, Spearman, Kendall, as its repository has
# them (reproduce/).
UNIEVAL: Mapping[str, tuple[float, float, float]] = {
    "naturalness": (0.443666, 0.513986, 0.373973),
    "coherence": (0.595143, 0.612942, 0.465915),
    "engagingness": (0.55651, 0.604739, 0.455941),
    "groundedness": (0.536209, 0.574954, 0.451533),
    "understandability": (0.380038, 0.467807, 0.360741),
    "overall": (0.632796, 0.662583, 0.487272),
}

# What retrieval/audit/claims.py has of Table 2 of Fashion-AlterEval, in words.
ALTEREVAL: Mapping[str, str] = {
    "assessed": "targets assessed",
    "with_relevant": "targets with an alternative",
    "mean_relevant": "alternatives a target",
    "judged_per_topic": "judgments a target",
}
