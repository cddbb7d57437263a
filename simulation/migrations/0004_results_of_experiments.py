import json
from hashlib import sha256

import django.db.models.deletion
from django.db import migrations, models

KEYS = dict.fromkeys(("recommender", "user", "measure"), "text")
TURNS = {
    **dict.fromkeys(("recommender", "user", "kind"), "text"),
    "tolerance": "integer",
    "p_switch": "number",
    "measure": "text",
    "turn": "integer",
    **dict.fromkeys(("mean", "ci_low", "ci_high"), "number"),
    **dict.fromkeys(("ci_method", "reason"), "text"),
    "n_targets": "integer",
    "judged": "number",
}
# Their relation to a version before, and their columns.
TABLES = {
    "turns": ("results", TURNS),
    "seeds": ("seed_results", KEYS | {"turn": "integer", "mean": "number", "seed": "integer"}),
    "targets": ("target_values", KEYS | {"target": "text", "value": "number"}),
    "sensitivity": (
        "sensitivity",
        KEYS
        | {"choice": "text", "value": "text"}
        | dict.fromkeys(("mean", "tau", "tau_low", "tau_high"), "number")
        | {"reason": "text"},
    ),
}
OF_USERS = ("kind", "tolerance", "p_switch")
NO_FACTS = ("id", "version_id", "position")


def store_results(apps, schema_editor):
    from results.kinds import pack_rows

    get = apps.get_model
    results, parts = get("results", "Result").objects, get("results", "ResultPart").objects
    types = get("contenttypes", "ContentType").objects
    subject_type, _ = types.get_or_create(app_label="simulation", model="storedexperiment")
    moved = {}
    for version in get("simulation", "ExperimentVersion").objects.order_by("pk").iterator():
        users = version.users.order_by("position").values()
        recommenders = version.recommenders.order_by("position")
        names = ("name", "spec", "sha256")
        facts = {
            "users": [{name: one[name] for name in one if name not in NO_FACTS} for one in users],
            "recommenders": [
                {name: getattr(one, name) for name in names} | {"trained": one.trained_id}
                for one in recommenders
            ],
        }
        result = results.create(
            subject_type=subject_type,
            subject_id=version.experiment_id,
            kind="experiment",
            number=version.number,
            form=version.form,
            fingerprint=version.fingerprint,
            settings=version.rules,
            facts=facts,
            packed_record=version.packed_record,
            created_by_id=version.created_by_id,
            finished_at=version.finished_at,
        )
        # It is the present time when a row is created.
        results.filter(pk=result.pk).update(created_at=version.created_at)
        for name, (related, columns) in TABLES.items():
            rows = read_rows(getattr(version, related), columns)
            for part, content in pack_rows(name, columns, rows):
                parts.create(result=result, name=part, content=content)
        for one in recommenders:
            one.pieces.update(result=result, position=one.position, trained=one.trained_id)
        version.dialogue_studies.update(result=result)
        moved[version.pk] = result.pk
    move_jobs(get("work", "Job").objects.filter(subject__startswith="experiment:"), moved)


def read_rows(related, columns):
    rows = related.select_related("recommender", "user").order_by("pk")
    for row in rows.iterator(chunk_size=2000):
        values = {name: getattr(row.user if name in OF_USERS else row, name) for name in columns}
        yield values | {"recommender": row.recommender.name, "user": row.user.name}


def move_jobs(jobs, moved):
    for job in jobs.iterator():
        if (version := job.arguments.get("version")) in moved:
            job.arguments["version"] = moved[version]
            described_by = json.dumps([job.kind, job.subject, job.arguments], sort_keys=True)
            job.dedupe_key = sha256(described_by.encode()).hexdigest()
            job.save(update_fields=["arguments", "dedupe_key"])


class Migration(migrations.Migration):

    dependencies = [
        ("simulation", "0003_delete_packed_tables"),
        ("results", "0002_finished_results"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("work", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            "dialoguepiece",
            "result",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="pieces",
                to="results.result",
            ),
        ),
        migrations.AddField("dialoguepiece", "position", models.PositiveSmallIntegerField(null=True)),
        migrations.AddField(
            "dialoguepiece",
            "trained",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="simulation.storedrecommender",
            ),
        ),
        migrations.AddField(
            "dialoguestudy",
            "result",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="results.result",
            ),
        ),
        migrations.RunPython(store_results, migrations.RunPython.noop),
    ]
