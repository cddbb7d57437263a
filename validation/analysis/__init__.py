"""Which metric agrees with human ratings: judgments beside scores, and what is sure of it.

`report_from_tables` makes a report of plain tables, `validation.versions` of a study, and
`validation.versions` stores it under a version. Its parts are tuples of the records in
`validation.analysis.records`, and as JSON (`Results.content()`) lists under these names; a number
that is undefined is None:

- ``form``, ``fingerprint`` (SHA-256 of the judgments and scores), ``settings`` (see `Settings`),
  ``inputs`` (counts, with ``score_sets``: metric, signature, higher_is_better, is_primary,
  n_scores, n_unscored, n_undefined, n_unparsed, digest; and ``labels``: question, version,
  signature, n_labels, n_adjudicated).
- ``correlations``: one metric against one question at one level by one coefficient.
  question, scope, by, metric, signature, higher_is_better, is_primary, level, coefficient; value,
  reason,
  ci_low, ci_high, ci_method, confidence, n_resamples, n_resamples_undefined, seed; groups:
  n_groups, n_used, n_undefined, n_too_few, n_constant_human, n_constant_metric, undefined,
  n_zeroed; cells: n_items, n_systems, n_rows, n_missing, threshold; coverage of the judged
  candidates: n_candidates, n_scored, n_unscored, n_undefined_scores, n_unparsed,
  n_items_of_one_score (which the metric does not tell the candidates of apart); ceiling:
  attainable, share_of_ceiling, leave_one_out; rank (by value, ties share the mean), cluster
  (significance rank; None where undefined), input (the fingerprint). Variants, which are not
  primary, have neither rank nor cluster, and no part in comparisons, sensitivity and planning.
- ``comparisons``: two metrics. question, scope, by, level, coefficient, metric_a, signature_a,
  metric_b, signature_b, value_a, value_b, delta, ci_low, ci_high, test, p, p_holm, p_bh,
  n_draws, seed, reason.
- ``ceilings``: question, scope, by, level, coefficient, split_half, reliability, attainable,
  leave_one_out, icc_single, icc_mean, ratings_per_candidate, n_splits, seed, reason, warning
  (why the ceiling is unreliable).
- ``sensitivity``: one setting changed. question, scope, by, level, coefficient, metric,
  signature, setting, choice, value, rank, base_choice, base_value, base_rank, delta,
  moves_rank, n_used, n_zeroed, reason. Settings with nothing to act upon are left out.
- ``systems``: question, scope, by, system, mean, ci_low, ci_high, ci_method, confidence,
  n_resamples, seed, n_candidates, rank, and ``metrics``: metric, signature, higher_is_better,
  mean, n_scored, rank, rank_difference (the metric's less the human one).
- ``disagreements``: two systems a metric puts in the other order. question, scope, by, metric,
  signature, better, worse, human_delta, metric_delta.
- ``worst``: question, metric, signature, rank, item, candidate, system, condition, human, score,
  z_human, z_score, residual.
- ``planning``: how many items and annotators would tell two metrics apart; empty unless
  `Settings.planned` names levels and coefficients. See `validation.analysis.ceilings`.

``scope`` is "all" (candidates of all conditions together; ``by`` is empty), "condition" (``by``
names it) or "mean_of_conditions" (the mean of the conditions' values; ``by`` is empty). ``level``
is "item" (sample level), "system" or "pooled". Scores of a metric of which less is better are
turned round first, so that a greater coefficient is always better; means and scores shown are
as the metric gave them.
"""

from validation.analysis.correlations import MetricAgreement
from validation.analysis.material import Material
from validation.analysis.report import ValidationReport, report_from_tables
from validation.analysis.settings import EVERY_CONDITION, Settings

__all__ = [
    "EVERY_CONDITION",
    "Material",
    "MetricAgreement",
    "Settings",
    "ValidationReport",
    "report_from_tables",
]
