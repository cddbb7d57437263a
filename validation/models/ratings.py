"""What people's ratings say of systems: the same beside metrics (`RatedSystem`, `RatedPair`) and by
itself (`HumanResultsSystem`, `HumanResultsPair`)."""

from __future__ import annotations

from django.db import models

from validation.models.fields import code_field, name_field, number_field


class SystemRating(models.Model):
    """What people rate a system on average."""

    system = name_field()
    mean = number_field()
    ci_low = number_field()
    ci_high = number_field()
    method = code_field()
    rank_low = models.PositiveSmallIntegerField()
    rank_high = models.PositiveSmallIntegerField()
    n_items = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_ratings = models.PositiveIntegerField()
    n_items_off_end = models.PositiveIntegerField(null=True)
    busiest_share = number_field()

    class Meta:
        abstract = True


class PairRating(models.Model):
    """Two systems as people rate them, and what would tell them apart."""

    a = name_field()
    b = name_field()
    delta = number_field()
    se = number_field()
    ci_low = number_field()
    ci_high = number_field()
    test = code_field()
    freedom = number_field()
    p = number_field()
    p_adjusted = number_field()
    estimand = models.CharField(max_length=80)
    n_items = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    items_needed = models.PositiveIntegerField(null=True)
    annotators_needed = models.PositiveIntegerField(null=True)
    least_shown = number_field()
    least_shown_of_twice = number_field()

    class Meta:
        abstract = True
