from django import forms, template
from django.forms import BoundField
from django.utils.safestring import SafeString

from accounts.roles import Role

register = template.Library()
CLASSES: list[tuple[type[forms.Widget], str]] = [
    (forms.CheckboxInput, "form-check-input"),
    (forms.Select, "form-select"),
]


@register.simple_tag
def control(field: BoundField) -> SafeString:
    widget = field.field.widget
    widget.attrs.pop("placeholder", None)
    style = next((name for kind, name in CLASSES if isinstance(widget, kind)), "form-control")
    return field.as_widget(attrs={"class": style})


@register.filter
def control_id(field: BoundField) -> str:
    """The id that an error leads to: of a group of boxes or radios that of the first, as the group
    itself takes no keyboard."""
    return field.id_for_label or (
        field.subwidgets[0].id_for_label if field.subwidgets else field.auto_id
    )


@register.simple_tag
def all_roles() -> list[Role]:
    return list(Role)


@register.filter
def role_summary(role: str) -> str:
    return Role(role).summary
