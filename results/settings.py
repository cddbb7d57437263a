"""Settings of a kind of results: a dataclass whose fields make the form, the API's schema, the
command's options and the documentation.

    @dataclass(frozen=True, kw_only=True)
    class ReuseSettings:
        pool_depth: int | None = setting(None, Number(label=_("Depth of the pool"), least=1))
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _

from presentation.libraries import serializers

if TYPE_CHECKING:
    from django.db import models
    from django_stubs_ext import StrOrPromise

Choices = Sequence[tuple[Any, "StrOrPromise"]]
# Between names, not inside of one's brackets.
SEPARATOR = re.compile(r"[;\n]|,(?![^()]*\))")
MOST_NAMES = 100
LONGEST_NAME = 200


def setting(default: Any, described: Setting) -> Any:
    metadata = {"setting": described}
    if isinstance(default, list | tuple):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def list_settings(settings: type) -> dict[str, tuple[Setting, Any]]:
    found = {}
    for one in fields(settings):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        found[one.name] = (one.metadata["setting"], default)
    return found


@dataclass(frozen=True, kw_only=True)
class Setting(ABC):
    label: StrOrPromise
    help: StrOrPromise = ""
    is_advanced: bool = False

    def form_fields(self, name: str, default: Any, subject: models.Model) -> dict[str, forms.Field]:
        return {name: self.form_field(default)}

    @abstractmethod
    def form_field(self, default: Any) -> forms.Field:
        """The field of a form."""

    def read(self, name: str, data: Mapping[str, Any], default: Any) -> Any:
        value = data.get(name)
        return default if value in (None, "") else value

    def begin(self, name: str, value: Any) -> dict[str, Any]:
        return {name: value}

    @abstractmethod
    def api_field(self, default: Any) -> serializers.Field[Any, Any, Any, Any]:
        """The field of an API's input."""

    @abstractmethod
    def add_option(self, parser: ArgumentParser, name: str, default: Any) -> None:
        """Add the option of a command."""

    def _texts(self) -> dict[str, Any]:
        return {"label": self.label, "help_text": self.help, "required": False}


def name_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class Number(Setting):
    """A number within limits; whole unless it `is_fraction`."""

    least: float | None = None
    most: float | None = None
    is_fraction: bool = False

    def form_field(self, default: Any) -> forms.Field:
        kind: type[forms.Field] = forms.FloatField if self.is_fraction else forms.IntegerField
        limits: dict[str, Any] = {"min_value": self.least, "max_value": self.most}
        return kind(initial=default, **limits, **self._texts())

    def api_field(self, default: Any) -> serializers.Field[Any, Any, Any, Any]:
        kind = serializers.FloatField if self.is_fraction else serializers.IntegerField
        limits = {"min_value": self.least, "max_value": self.most}
        given: dict[str, Any] = {name: one for name, one in limits.items() if one is not None}
        return kind(default=default, allow_null=default is None, help_text=self.label, **given)

    def add_option(self, parser: ArgumentParser, name: str, default: Any) -> None:
        parser.add_argument(
            name_option(name), type=self._parse, default=default, help=str(self.label)
        )

    def _parse(self, text: str) -> float:
        try:
            value = float(text) if self.is_fraction else int(text)
        except ValueError:
            kind = "number" if self.is_fraction else "whole number"
            raise ArgumentTypeError(f"'{text}' is not a {kind}") from None
        least, most = (-inf if self.least is None else self.least), self.most
        if not least <= value <= (inf if most is None else most):
            raise ArgumentTypeError(f"{text} is not between {least:g} and {most or inf:g}")
        return value


@dataclass(frozen=True, kw_only=True)
class Flag(Setting):
    """Yes or no. A form may ask the opposite question, in a field of another name."""

    asked_as: str = ""

    def form_fields(self, name: str, default: Any, subject: models.Model) -> dict[str, forms.Field]:
        return {self.asked_as or name: self.form_field(default)}

    def form_field(self, default: Any) -> forms.Field:
        return forms.BooleanField(initial=default != bool(self.asked_as), **self._texts())

    def read(self, name: str, data: Mapping[str, Any], default: Any) -> Any:
        return bool(data.get(self.asked_as or name)) != bool(self.asked_as)

    def begin(self, name: str, value: Any) -> dict[str, Any]:
        return {self.asked_as or name: bool(value) != bool(self.asked_as)}

    def api_field(self, default: Any) -> serializers.Field[Any, Any, Any, Any]:
        return serializers.BooleanField(default=default)

    def add_option(self, parser: ArgumentParser, name: str, default: Any) -> None:
        parser.add_argument(
            name_option(name), action=BooleanOptionalAction, default=default, help=str(self.label)
        )


@dataclass(frozen=True, kw_only=True)
class Choice(Setting):
    """One of several values; those of a subject are found when its form is shown.

    `key` makes an offered value of the text that a form sends.
    """

    choices: Choices = ()
    offer: Callable[[Any], Choices] | None = None
    key: type = int

    def form_fields(self, name: str, default: Any, subject: models.Model) -> dict[str, forms.Field]:
        if self.offer is None:
            return {name: self.form_field(default)}
        offered = [(str(value), title) for value, title in self.offer(subject)]
        if not offered:
            return {}
        choices = [*self.choices, *offered]
        return {name: forms.ChoiceField(choices=choices, initial=default, **self._texts())}

    def form_field(self, default: Any) -> forms.Field:
        choices = [("" if value is None else value, title) for value, title in self.choices]
        return forms.ChoiceField(choices=choices, initial=default, **self._texts())

    def read(self, name: str, data: Mapping[str, Any], default: Any) -> Any:
        value = super().read(name, data, default)
        return self.key(value) if self.offer is not None and value is not None else value

    def api_field(self, default: Any) -> serializers.Field[Any, Any, Any, Any]:
        if self.offer is not None and self.key is str:
            return serializers.CharField(required=False, help_text=self.help)
        if self.offer is not None:
            return serializers.IntegerField(required=False, min_value=1, help_text=self.help)
        choices = [value for value, _title in self.choices if value is not None]
        return serializers.ChoiceField(choices=choices, default=default, allow_null=default is None)

    def add_option(self, parser: ArgumentParser, name: str, default: Any) -> None:
        if self.offer is None:
            choices = [value for value, _title in self.choices if value is not None]
            parser.add_argument(
                name_option(name), choices=choices, default=default, help=str(self.label)
            )
        else:
            parser.add_argument(name_option(name), type=self.key, help=str(self.label))


@dataclass(frozen=True, kw_only=True)
class Names(Setting):
    """A list of names, such as measures: the common ones to tick, others to type."""

    common: Sequence[str] = ()
    # What a form begins with, if that is not the default.
    begins_with: Sequence[str] = ()
    others_label: StrOrPromise = ""
    others_name: str = "others"
    # Whether names have commas, so that only semicolons and line breaks are between them.
    have_commas: bool = False

    def form_fields(self, name: str, default: Any, subject: models.Model) -> dict[str, forms.Field]:
        if not self.common:
            return {name: self.form_field(default)}
        return {
            name: forms.MultipleChoiceField(
                label=self.label,
                required=False,
                choices=[(one, one) for one in self.common],
                initial=list(default),
                widget=forms.CheckboxSelectMultiple,
            ),
            self.others_name: forms.CharField(
                label=self.others_label, help_text=self.help, required=False, max_length=1000
            ),
        }

    def form_field(self, default: Any) -> forms.Field:
        return forms.CharField(
            max_length=1000, initial=self._join(self.begins_with or default), **self._texts()
        )

    def read(self, name: str, data: Mapping[str, Any], default: Any) -> Any:
        if not self.common:
            return split_names(data.get(name, ""), have_commas=self.have_commas)
        return [*data.get(name, []), *split_names(data.get(self.others_name, ""))]

    def begin(self, name: str, value: Any) -> dict[str, Any]:
        if not self.common:
            return {name: self._join(value)}
        typed = [one for one in value if one not in self.common]
        ticked = [one for one in value if one in self.common]
        return {name: ticked, self.others_name: ", ".join(typed)}

    def api_field(self, default: Any) -> serializers.Field[Any, Any, Any, Any]:
        return serializers.ListField(
            child=serializers.CharField(max_length=LONGEST_NAME),
            default=list(default),
            max_length=MOST_NAMES,
        )

    def add_option(self, parser: ArgumentParser, name: str, default: Any) -> None:
        parser.add_argument(
            name_option(name), nargs="+", metavar="NAME", default=default, help=str(self.label)
        )

    def _join(self, names: Sequence[str]) -> str:
        return ("; " if self.have_commas else ", ").join(names)


def split_names(text: str, *, have_commas: bool = False) -> list[str]:
    """Names with commas (unless they have some), semicolons or line breaks between."""
    separator = re.compile(r"[;\n]") if have_commas else SEPARATOR
    return [name.strip() for name in separator.split(text) if name.strip()]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Files, or other rows of the subject, that a result is computed from.

    Attributes
    ----------
    several : bool
        Whether several can be chosen.
    begins_with_all : bool
        Whether all are chosen at first, instead of the first one or none.
    is_required : bool
        Whether a form refuses to do without.
    is_subset : bool
        Whether they are some of another input, which the settings name.
    stored_as : str
        The setting that holds the names of what was chosen; empty if none does.
    """

    label: StrOrPromise
    help: StrOrPromise = ""
    several: bool = False
    begins_with_all: bool = False
    is_required: bool = True
    is_subset: bool = False
    stored_as: str = ""

    def form_field(self, choices: Choices) -> forms.Field:
        keys = [key for key, _title in choices]
        texts: dict[str, Any] = {"label": self.label, "help_text": self.help}
        texts["required"] = self.is_required
        if self.several:
            return forms.MultipleChoiceField(
                choices=choices,
                widget=forms.CheckboxSelectMultiple,
                initial=keys if self.begins_with_all else [],
                **texts,
            )
        if not self.is_required:
            choices = [("", _("none")), *choices]
        return forms.ChoiceField(choices=choices, initial=keys[0] if keys else "", **texts)

    def choose(self, offered: Sequence[Any], named: str | Sequence[str] | None) -> list[Any]:
        """The rows of these names, or those that a form begins with; ValueError for a name that
        no row has."""
        if named is None:
            return list(offered) if self.begins_with_all else []
        names = [named] if isinstance(named, str) else named
        rows = {row.name: row for row in offered}
        if unknown := [name for name in names if name not in rows]:
            text = _("{name} is none of the usable files: {names}.")
            known = ", ".join(rows) or _("there are none")
            raise ValueError(text.format(name=unknown[0], names=known))
        return [rows[name] for name in dict.fromkeys(names)]

    def api_field(self) -> serializers.Field[Any, Any, Any, Any]:
        if self.several:
            return serializers.ListField(
                child=serializers.CharField(),
                required=False,
                help_text="Names; all of them without it." if self.begins_with_all else "Names.",
            )
        return serializers.CharField(required=self.is_required, help_text="A name.")

    def add_option(self, parser: ArgumentParser, name: str) -> None:
        parser.add_argument(
            name_option(name),
            nargs="+" if self.several else None,
            required=self.is_required and not self.begins_with_all,
            metavar="NAME",
            help=str(self.label),
        )
