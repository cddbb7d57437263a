"""Samples of items written down as they are drawn, and read as a design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db.models import Max

from annotation.models import ItemSample, SampledItem, Study

if TYPE_CHECKING:
    import pandas as pd


DESIGN = ("item", "batch", "probability")


def record_item_sample(
    *, study: Study, probabilities: Mapping[int, float | None], **how: Any
) -> ItemSample:
    """Store a draw of items by primary key; under the lock on the study that drew them."""
    last = ItemSample.objects.of(study).aggregate(last=Max("number"))["last"] or 0
    sample = ItemSample.objects.create(study=study, number=last + 1, **how)
    add_to_item_sample(sample=sample, probabilities=probabilities)
    return sample


def add_to_item_sample(*, sample: ItemSample, probabilities: Mapping[int, float | None]) -> None:
    """Store further items of a sample, such as those imported after it was of all."""
    SampledItem.objects.bulk_create(
        (
            SampledItem(sample=sample, item_id=item, probability=probability)
            for item, probability in probabilities.items()
        ),
        batch_size=1000,
    )


def sample_design(study: Study, round_: int = 1) -> pd.DataFrame:
    """Each item that was sent in a round by its key, with the first sample it was of and its
    probability there, missing where it was picked by hand."""
    import pandas as pd

    rows = SampledItem.objects.filter(sample__study=study, sample__round=round_)
    values = rows.order_by("sample__number").values_list(
        "item__key", "sample__number", "probability"
    )
    frame = pd.DataFrame.from_records(list(values), columns=list(DESIGN))
    frame = frame.astype({"batch": "float64", "probability": "float64"})
    return frame.drop_duplicates("item", ignore_index=True)
