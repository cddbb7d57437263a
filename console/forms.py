"""What the pages' forms refuse, in words."""

from django import forms


def problems_of(form: forms.BaseForm) -> str:
    """All that a form refuses, as sentences."""
    return " ".join(str(error) for errors in form.errors.values() for error in errors)
