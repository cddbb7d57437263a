"""Every batch gets the sample that it was: its items, with the probability of each where the
batch's selection says how they were drawn and the same draw today gives the same items."""

from collections import Counter, defaultdict
from hashlib import sha256
from itertools import chain, zip_longest

from django.db import migrations


def write_samples(apps, schema_editor):
    Batch = apps.get_model("hits", "Batch")
    ItemSample = apps.get_model("annotation", "ItemSample")
    numbers = Counter()
    for batch in Batch.objects.filter(item_sample=None).order_by("pk").iterator(chunk_size=200):
        available, probabilities = _probabilities(apps, batch)
        if not probabilities:
            continue
        numbers[batch.study_id] += 1
        sample = ItemSample.objects.create(
            study_id=batch.study_id,
            number=numbers[batch.study_id],
            round=batch.round,
            method=_method(batch.selection),
            seed=batch.selection.get("seed"),
            n_available=available,
        )
        ItemSample.objects.filter(pk=sample.pk).update(created_at=batch.created_at)
        SampledItem = apps.get_model("annotation", "SampledItem")
        SampledItem.objects.bulk_create(
            [
                SampledItem(sample=sample, item_id=item, probability=probability)
                for item, probability in probabilities.items()
            ],
            batch_size=1000,
        )
        Batch.objects.filter(pk=batch.pk).update(item_sample=sample)


def _method(selection):
    if "keys" in selection:
        return "listed"
    return "random" if "n" in selection else "all"


def _probabilities(apps, batch):
    """How many items there were to draw from, and the probability of each of the batch's."""
    Hit = apps.get_model("hits", "Hit")
    own = list(
        Hit.objects.filter(batch=batch).order_by("item_id").values_list("item", flat=True).distinct()
    )
    rows = _rows_left(apps, batch)
    if "keys" in batch.selection:
        return len(rows), dict.fromkeys(own)
    if "n" not in batch.selection:
        return len(rows), dict.fromkeys(own, 1.0)
    drawn = _draw(rows, batch.selection["n"], batch.selection["seed"])
    if drawn != set(own):  # items came or went since: nobody can say of how many it was
        return len(rows), dict.fromkeys(own)
    available, taken = Counter(row[2] for row in rows), Counter(
        row[2] for row in rows if row[0] in drawn
    )
    if set(available) != set(taken):
        return len(rows), dict.fromkeys(own)
    return len(rows), {
        row[0]: taken[row[2]] / available[row[2]] for row in rows if row[0] in drawn
    }


def _rows_left(apps, batch):
    """The items that had no HIT in the batch's round and connection when it was planned."""
    Hit = apps.get_model("hits", "Hit")
    Item = apps.get_model("annotation", "Item")
    earlier = Hit.objects.filter(
        batch__study=batch.study_id,
        batch__round=batch.round,
        batch__connection=batch.connection_id,
        batch__part__lt=batch.part,
    )
    items = Item.objects.filter(study=batch.study_id).exclude(pk__in=earlier.values("item"))
    if of_round := batch.selection.get("of_round"):
        asked = Hit.objects.filter(batch__study=batch.study_id, batch__round=of_round)
        items = items.filter(pk__in=asked.exclude(hit_id="").values("item"))
    document = batch.protocol.document if batch.protocol else {}
    practice = (document.get("qualifications") or {}).get("practice") or {}
    keys = [one.get("item") for one in practice.get("items", []) if one.get("item")]
    rows = items.exclude(key__in=keys).order_by("position", "pk")
    return list(rows.values_list("pk", "key", "condition"))


def _draw(rows, n_items, seed):
    by_condition = defaultdict(list)
    for row in sorted(rows, key=lambda row: sha256(f"{seed}\n{row[1]}".encode()).digest()):
        by_condition[row[2]].append(row)
    in_turn = chain.from_iterable(zip_longest(*by_condition.values()))
    return {row[0] for row in [row for row in in_turn if row is not None][:n_items]}


class Migration(migrations.Migration):
    dependencies = [("hits", "0021_item_samples"), ("annotation", "0014_item_samples")]

    operations = [migrations.RunPython(write_samples, migrations.RunPython.noop)]
