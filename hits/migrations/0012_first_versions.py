"""Every study that was published gets a first version of a protocol: what its pages showed."""

import hashlib
import json

from django.db import migrations


def write_first_versions(apps, schema_editor):
    Protocol = apps.get_model("annotation", "Protocol")
    Batch = apps.get_model("hits", "Batch")
    Study = apps.get_model("annotation", "Study")
    Submission = apps.get_model("annotation", "Submission")
    published = Study.objects.filter(batches__isnull=False).distinct()
    for study in published.iterator(chunk_size=200):
        document = _document(study)
        text = json.dumps(document, sort_keys=True, ensure_ascii=False)
        first = Batch.objects.filter(study=study).order_by("created_at").first()
        version = Protocol.objects.create(
            study=study,
            number=1,
            document=document,
            fingerprint=hashlib.sha256(text.encode()).hexdigest(),
            frozen_at=first.created_at,
        )
        Batch.objects.filter(study=study).update(protocol=version)
        # What was imported was made elsewhere, and names no version.
        collected = Submission.objects.filter(item__study=study, assignment__isnull=False)
        collected.update(protocol=version)


def _document(study):
    is_pool = study.kind == "alternatives"
    least = study.justification_min_length
    questions = study.questions.order_by("position", "pk")
    document = {
        "assay_protocol": 1,
        "questions": [_question(question, is_pool) for question in questions],
        "title": study.title,
    }
    if study.instructions:
        document["instructions"] = study.instructions
    if is_pool or least:
        document["reason"] = {"rule": "page"} | ({"least_length": least} if least else {})
    return document


def _question(question, is_pool):
    said = {"name": question.name, "wording": question.wording}
    if is_pool:
        return {"name": question.name, "kind": "selection", "wording": question.wording}
    if question.categories:
        return said | {"kind": "category", "categories": question.categories}
    said["kind"] = "line"
    labels = {"low_label": question.low_label, "high_label": question.high_label}
    said |= {name: label for name, label in labels.items() if label}
    if question.scale_min != 0:
        said["minimum"] = _whole(question.scale_min)
    if question.scale_max != 100:
        said["maximum"] = _whole(question.scale_max)
    if question.level in ("ordinal", "ratio"):
        said["level"] = question.level
    return said


def _whole(value):
    return int(value) if float(value).is_integer() else value


class Migration(migrations.Migration):
    dependencies = [
        ("hits", "0011_protocols"),
        ("annotation", "0007_kinds_of_questions"),
    ]

    operations = [migrations.RunPython(write_first_versions, migrations.RunPython.noop)]
