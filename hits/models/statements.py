"""What a marketplace says a batch came to."""

from django.db import models

from hits.models.batches import Batch


class Statement(models.Model):
    """The marketplace's own sums for a batch's HITs, as of a moment; to be held against ours."""

    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="statement")
    fetched_at = models.DateTimeField()
    rewards_usd = models.DecimalField(max_digits=12, decimal_places=2)
    fees_usd = models.DecimalField(max_digits=12, decimal_places=2)
    bonuses_usd = models.DecimalField(max_digits=12, decimal_places=2)
    bonus_fees_usd = models.DecimalField(max_digits=12, decimal_places=2)
    held_usd = models.DecimalField(max_digits=12, decimal_places=2)
    n_accepted = models.PositiveIntegerField(help_text="Being worked on.")
    n_submitted = models.PositiveIntegerField()
    n_approved = models.PositiveIntegerField()
    n_rejected = models.PositiveIntegerField()
    n_returned = models.PositiveIntegerField()
    n_abandoned = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"of {self.batch}"
