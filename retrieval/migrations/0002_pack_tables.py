import json
import zlib

from django.db import migrations


def plain(row, name):
    value = getattr(row, name)
    return value if value == value else None  # PostgreSQL stores NaN


def values_of(row):
    return {
        field.name: plain(row, field.name)
        for field in row._meta.fields
        if field.name not in ("id", "version")
    }


def pack(version, record):
    version.packed_record = zlib.compress(json.dumps(record, allow_nan=False).encode())
    version.save(update_fields=["facts", "packed_record"])


def pack_pools(apps, schema_editor):
    for summary in apps.get_model("retrieval", "PoolSummary").objects.select_related("version"):
        version = summary.version
        rows = version.candidate_sources.order_by("pk")
        version.facts = {**version.facts, **values_of(summary)}
        pack(version, {"sources": list(map(values_of, rows))})


PAIR = ("delta", "ci_low", "ci_high", "test", "p", "p_adjusted", "n_topics", "n_better", "n_worse")
LIMITS = ("ci_low", "ci_high", "ci_method", "n_topics")


def pairs_of(version):
    for row in version.pairs.order_by("pk").select_related("a", "b", "measure"):
        names = {"a": row.a.name, "b": row.b.name, "measure": row.measure.name}
        yield names | {name: plain(row, name) for name in PAIR} | {"reason": row.reason or None}


def weighted_of(version):
    means, differences = [], []
    for row in version.weighted_results.order_by("pk").select_related("run", "other", "measure"):
        if row.other is None:
            record = {"run": row.run.name, "measure": row.measure.name, "mean": plain(row, "value")}
        else:
            record = {"a": row.run.name, "b": row.other.name, "measure": row.measure.name}
            record["delta"] = plain(row, "value")
        record |= {name: plain(row, name) for name in LIMITS} | {"reason": row.reason or None}
        (means if row.other is None else differences).append(record)
    return {"means": means, "differences": differences}


def pack_evaluations(apps, schema_editor):
    weights = apps.get_model("retrieval", "EvaluationWeights").objects.all()
    weights = {row.version_id: row for row in weights}
    versions = apps.get_model("results", "Result").objects.filter(kind="evaluation")
    for version in versions.iterator():
        record = {"comparisons": list(pairs_of(version)), "weighted": None}
        if row := weights.get(version.pk):
            of_all = {"file": row.name, "has_strata": row.has_strata}
            record["weighted"] = of_all | {"effective_n": row.effective_n} | weighted_of(version)
        pack(version, record)


class Migration(migrations.Migration):

    dependencies = [("results", "0001_initial"), ("retrieval", "0001_initial")]

    operations = [
        migrations.RunPython(pack_pools, migrations.RunPython.noop),
        migrations.RunPython(pack_evaluations, migrations.RunPython.noop),
    ]
