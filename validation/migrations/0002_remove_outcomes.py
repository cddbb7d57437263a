from django.db import migrations


def note_material(apps, schema_editor):
    """Keep the digest of a validation's material among its facts: its fingerprint is now that of the
    study, and unknown until the study is validated again, which finds the same numbers. Reports are
    results of their own, and written again on request."""
    Result = apps.get_model("results", "Result")
    ResultPart = apps.get_model("results", "ResultPart")
    # Jobs named their results in another way; pages request them again.
    apps.get_model("work", "Job").objects.filter(kind="result").delete()
    studies = Result.objects.filter(
        subject_type__app_label="annotation", subject_type__model="study", kind="validation"
    )
    for result in studies.exclude(facts__has_key="material").only("facts", "fingerprint"):
        result.facts["material"] = result.fingerprint
        result.fingerprint = ""
        result.save(update_fields=["facts", "fingerprint"])
    ResultPart.objects.filter(result__in=studies.values("pk"), name__contains=".").delete()


class Migration(migrations.Migration):
    dependencies = [("validation", "0001_initial"), ("results", "0001_initial"), ("work", "0001_initial")]
    operations = [
        migrations.RunPython(note_material, migrations.RunPython.noop),
        migrations.DeleteModel("ValidationOutcome"),
    ]
