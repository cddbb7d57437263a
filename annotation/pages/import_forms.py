from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts.models import Team, User
from accounts.names import require_visible
from accounts.roles import PERMISSIONS, Permission
from annotation.models import Study, Upload
from annotation.pages.tool_settings import TOOL_NAMES
from annotation.protocols.templates import template_names
from annotation.readers.formats import DELIMITERS, FileFormat
from annotation.readers.mapping import ColumnMapping, Use
from annotation.readers.text_files import ENCODINGS

NO_PICTURES = "no_pictures"
FROM_FILE, FROM_TEMPLATE, FROM_COPY, FROM_LABELS = "file", "template", "copy", "labels"
ACCEPTED = ".csv,.tsv,.txt,.xlsx,.xlsm,.json,.jsonl,.ndjson,.parquet,.zip,.gz"
DELIMITER_NAMES = {
    ",": _("commas"),
    ";": _("semicolons"),
    "\t": _("tabs"),
    "|": _("vertical bars"),
}


def file_field(**options: Any) -> forms.FileField:
    return forms.FileField(
        label=_("File"),
        widget=forms.ClearableFileInput(attrs={"accept": ACCEPTED}),
        help_text=_(
            "CSV, Excel, ODS, JSON, JSON Lines, Parquet, or a zip with a table and pictures."
        ),
        allow_empty_file=True,
        **options,
    )


def teams_to_import_into(user: User) -> list[Team]:
    roles = [role for role, permissions in PERMISSIONS.items() if Permission.EDIT in permissions]
    return list(
        Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles).order_by("name")
    )


class StudyField(forms.ModelChoiceField[Study]):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.title} ({obj.slug})"


class NewStudyForm(forms.Form):
    title = forms.CharField(
        label=_("Name of the study"), max_length=128, validators=[require_visible]
    )
    team = forms.ChoiceField(
        label=_("Team"),
        required=False,
        help_text=_("Its members see the study. It cannot move to another team later."),
    )
    begin = forms.ChoiceField(
        label=_("Begin with"),
        choices=[
            (FROM_FILE, _("A file of items")),
            (FROM_TEMPLATE, _("A template; add items later")),
            (FROM_COPY, _("A copy of another study: items and design, without answers")),
            (
                FROM_LABELS,
                _("Labels collected elsewhere, for agreement and results"),
            ),
        ],
        initial=FROM_FILE,
        widget=forms.RadioSelect,
    )
    file = file_field(required=False)
    template = forms.ChoiceField(
        label=_("Template"),
        required=False,
        help_text=_("You can change tasks and questions on Design until you launch."),
    )
    tool = forms.ChoiceField(
        label=_("Collected with"),
        required=False,
        choices=[("", _("Detect automatically")), *TOOL_NAMES.items()],
    )
    source = StudyField(label=_("Study to copy"), queryset=Study.objects.none(), required=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self._teams = {str(team.pk): team for team in teams_to_import_into(user)}
        teams = [(key, team.name) for key, team in self._teams.items()]
        _choices(self, "team", [*teams, ("", _("Only you"))])
        if teams:
            self.fields["team"].initial = self._team_of_last_study(user) or teams[0][0]
        names = [(name, title_of(name)) for name in template_names()]
        _choices(self, "template", [("", _("None; suggest a task from the columns")), *names])
        self.fields["source"].queryset = Study.objects.visible_to(user).order_by("title", "pk")  # type: ignore[attr-defined]

    def _team_of_last_study(self, user: User) -> str:
        made = Study.objects.filter(owner=user.pk, team__in=list(self._teams))
        return str(made.order_by("-pk").values_list("team", flat=True).first() or "")

    @property
    def template_purposes(self) -> list[tuple[str, str, str]]:
        return [(name, title_of(name), purpose_of(name)) for name in template_names()]

    @property
    def chosen_team(self) -> Team | None:
        return self._teams.get(self.cleaned_data.get("team", ""))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        begin = data.get("begin")
        needed = {FROM_TEMPLATE: "template", FROM_COPY: "source"}
        needed |= dict.fromkeys((FROM_FILE, FROM_LABELS), "file")
        problems = {
            "file": _("Choose a file."),
            "template": _("Choose a template."),
            "source": _("Choose a study."),
        }
        name = needed.get(str(begin))
        if name and not data.get(name) and name not in self.errors:
            self.add_error(name, forms.ValidationError(problems[name], code="missing"))
        return data


def _choices(form: forms.Form, name: str, choices: list[Any]) -> None:
    form.fields[name].choices = choices  # type: ignore[attr-defined]


class FileForm(forms.Form):
    file = file_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)


class ReadingForm(forms.Form):
    encoding = forms.ChoiceField(
        label=_("Encoding"), required=False, choices=[(name, name) for name in ENCODINGS]
    )
    delimiter = forms.ChoiceField(
        label=_("Between columns"),
        required=False,
        choices=[(each, DELIMITER_NAMES[each]) for each in DELIMITERS],
    )
    sheet = forms.ChoiceField(label=_("Sheet"), required=False)
    table = forms.ChoiceField(label=_("File in the zip"), required=False)

    def __init__(self, form: FileFormat, *args: Any, **kwargs: Any) -> None:
        initial = {
            name: getattr(form, name) for name in ("encoding", "delimiter", "sheet", "table")
        }
        super().__init__(*args, **{"label_suffix": "", "initial": initial} | kwargs)
        _choices(self, "sheet", [(name, name) for name in form.sheets])
        _choices(self, "table", [(name, name) for name in form.tables])
        if form.encoding and form.encoding not in ENCODINGS:
            _choices(self, "encoding", [(name, name) for name in (form.encoding, *ENCODINGS)])
        unused = {
            "encoding": not form.encoding,
            "delimiter": not form.delimiter,
            "sheet": len(form.sheets) < 2,
            "table": len(form.tables) < 2,
        }
        for name in (name for name, is_unused in unused.items() if is_unused):
            del self.fields[name]

    @property
    def choice(self) -> FileFormat:
        return FileFormat(**{name: value for name, value in self.cleaned_data.items() if value})


def posted_mapping(upload: Upload, data: Any) -> ColumnMapping:
    uses, systems = {}, {}
    for n, column in enumerate(upload.columns):
        use, system = data.get(f"use-{n}", ""), data.get(f"system-{n}", "").strip()
        if use in list(Use):
            uses[column["name"]] = Use(use)
            if use == Use.RESPONSE and system:
                systems[column["name"]] = system[:200]
    return _fixed_mapping(upload, ColumnMapping(uses, systems), data.get("fix", ""))


def _fixed_mapping(upload: Upload, mapping: ColumnMapping, fix: str) -> ColumnMapping:
    """The mapping with what earlier fixes say, and with that of a button, such as "empty=keep"."""
    code, _equals, choice = fix.partition("=")
    names, uses = [column["name"] for column in upload.columns], dict(mapping.uses)
    fixes = dict(ColumnMapping.of(upload.mapping).fixes)
    if code == Use.ITEM and choice.isdecimal() and int(choice) < len(names):
        uses[names[int(choice)]] = Use.ITEM
    elif code == NO_PICTURES:
        of_pictures = (Use.PICTURE, Use.CANDIDATE_PICTURE)
        uses = {name: use for name, use in uses.items() if use not in of_pictures}
    elif choice:
        fixes[code[:40]] = choice[:500]
    return ColumnMapping(uses, mapping.systems, fixes)


# A title and a purpose by the name of the template.
TEMPLATES: dict[str, tuple[str | Promise, str | Promise]] = {
    "alternatives": (
        _("Ticks among alternatives, with reasons"),
        _("Which of several products would do instead of a target, ticked, and why."),
    ),
    "best_worst": (
        _("Best and worst"),
        _("Of the responses to one context the best and the worst: an order with few answers."),
    ),
    "e2e_ratings": (
        _("Ratings of naturalness and quality (E2E NLG)"),
        _("Texts written from facts, each rated for quality and naturalness in six steps."),
    ),
    "golden_answers": (
        _("Accuracy and usefulness against a golden answer"),
        _("How accurate and how useful each answer is, next to the answer of an expert."),
    ),
    "graded_relevance": (
        _("Relevance of results, four grades or can't judge"),
        _("How relevant each search result is to what was looked for: qrels with grades."),
    ),
    "likert_agreement": (
        _("Agreement with statements (Likert)"),
        _("How far one agrees with statements about each response, such as that it makes sense."),
    ),
    "outcomes": (
        _("Ticks among what dialogues ended with"),
        _("Which products that dialogues with an assistant ended with would do for the target."),
    ),
    "practised_ratings": (
        _("Ratings of appropriateness, with practice first"),
        _(
            "How appropriate each response is; workers practise first, are told what is right, and "
            "are paid for it."
        ),
    ),
    "preference": (
        _("Which one is better"),
        _("Two responses side by side, and which of them is better."),
    ),
    "style_ratings": (
        _("Ratings of appropriateness and style (LMStyle)"),
        _("How appropriate each response is, and how far it is in the style of its condition."),
    ),
    "switching": (
        _("Keep, take another or leave"),
        _("Whether somebody shown another product keeps to the target, takes it, or leaves."),
    ),
}


def title_of(name: str) -> str:
    return str(TEMPLATES[name][0]) if name in TEMPLATES else name


def purpose_of(name: str) -> str:
    return str(TEMPLATES[name][1]) if name in TEMPLATES else ""
