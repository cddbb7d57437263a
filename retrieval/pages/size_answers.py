"""The questions of How many?, and the answer to each with its curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from retrieval.pages.size_forms import (
    METHODS,
    OTHER_METHODS,
    POWER,
    WIDTH,
    CorrelationForm,
    DifferenceForm,
    KappaForm,
    MetricsForm,
    SizeForm,
    WidthForm,
    power_text,
)
from retrieval.sizes import (
    Size,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SizeQuestion:
    """A question of how many, as the page lists it."""

    name: str
    title: str | Promise
    form: type[SizeForm]


QUESTIONS = {
    one.name: one
    for one in (
        SizeQuestion("difference", gettext_lazy("Systems to be told apart"), DifferenceForm),
        SizeQuestion("width", gettext_lazy("A mean's interval"), WidthForm),
        SizeQuestion("kappa", gettext_lazy("Agreement (kappa)"), KappaForm),
        SizeQuestion("correlation", gettext_lazy("A correlation"), CorrelationForm),
        SizeQuestion("metrics", gettext_lazy("Two metrics"), MetricsForm),
    )
}


@dataclass(frozen=True)
class Answer:
    """How many are needed, in words, with what else is to be known of it."""

    form: SizeForm
    size: Size

    @property
    def sentence(self) -> str:
        return self.form.sentence(self.size)

    @property
    def exact(self) -> str:
        """What the formula gives, before it is rounded up."""
        text = _("exactly %(exact)s, rounded up")
        if self.form.cleaned_data.get("per_target", 1) > 1:
            text = _("exactly %(exact)s, if all were independent")
        return text % {"exact": f"{self.size.n_exact:,.2f}"}

    @property
    def rounding(self) -> str:
        """What rounding to the nearest would have lost."""
        if not (rounded := self.size.rounded):
            return ""
        text = _(
            "Rounded to the nearest, %(n)s would have power %(power)s: less than was asked for."
        )
        return text % {"n": f"{rounded['n']:,}", "power": power_text(rounded["power"])}

    @property
    def variants(self) -> list[tuple[str, int]]:
        """How many by each other method."""
        titles = {str(name): title for name, title in METHODS.items()} | OTHER_METHODS
        return [(str(titles[method]), n) for method, n in self.size.variants.items()]

    @property
    def rows(self) -> pd.DataFrame:
        return self.form.rows(self.size)

    @property
    def chart_title(self) -> str:
        return _("Power by number") if self.form.of == POWER else _("Width by number")

    @property
    def words(self) -> str:
        """What the curve shows, in words."""
        rows, of = self.rows, self.form.of
        first, last = rows.iloc[0], rows.iloc[-1]
        if of == WIDTH:
            first, last = last, first
        text = _("From %(first)s with %(n)s to %(last)s with %(n_last)s.")
        return text % {
            "first": f"{first[of]:.3f}",
            "n": f"{first['n']:,.0f}",
            "last": f"{last[of]:.3f}",
            "n_last": f"{last['n']:,.0f}",
        }


def answer_of(form: SizeForm) -> Answer | None:
    """The answer to a form, or None where it has none; why not is then an error of the form."""
    if not form.is_valid():
        return None
    try:
        return Answer(form, form.size())
    except (ValueError, OverflowError) as refused:
        form.add_error(*_at_its_field(form, str(refused).rstrip(".")))
        return None


def _at_its_field(form: SizeForm, reason: str) -> tuple[str | None, str]:
    """A reason that begins with the name of an argument, without it, at the field of that name."""
    name, _space, rest = reason.partition(" ")
    if rest and name in form.fields:
        return name, _("%(reason)s.") % {"reason": rest[0].upper() + rest[1:]}
    return None, _("%(reason)s.") % {"reason": reason}
