from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, get_args

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy

from console.forms import PlainForm
from retrieval.sizes import (
    Size,
    items_for_metrics,
    targets_for_kappa,
    topics_for_correlation,
    topics_for_difference,
    topics_for_interval,
    topics_for_several,
)
from stats.inference.agreement_sizes import items_for_kappa_width
from stats.inference.correlation_sizes import Method, metric_pair_power, power_for_correlation
from stats.inference.sample_sizes import (
    difference_power,
    systems_power,
    topics_for_width,
    whole_items,
)
from stats.libraries import np, pd

POWER, WIDTH = "power", "width"
# Of a curve: from a third of the answer to three times as many.
STEPS = np.geomspace(1 / 3, 3, 41)
# Of a curve of widths: n follows from the width, with its square at most.
WIDTHS = np.geomspace(3**-0.5, 3**0.5, 41)
# No curve goes on beyond so many.
MOST_TOPICS = 4_000_000_000

METHODS: dict[Method, str | Promise] = {
    "cohen": gettext_lazy("Fisher's z with its bias (as R's pwr.r.test)"),
    "exact": gettext_lazy("Exact, for bivariate normal data (as G*Power)"),
    "fisher": gettext_lazy("Fisher's z"),
    "spearman": gettext_lazy("Spearman's rho, variance of Bonett and Wright"),
    "spearman-fieller": gettext_lazy("Spearman's rho, variance of Fieller"),
    "point-biserial": gettext_lazy("Regression on fixed values (point-biserial)"),
}
assert set(METHODS) == set(get_args(Method))
OTHER_METHODS: dict[str, str | Promise] = {
    "gpower": gettext_lazy("G*Power, where the first correlation is that of both if none differs")
}


def _share(label: Any, initial: float, **options: Any) -> forms.FloatField:
    return number_field(label, initial, min_value=0, max_value=1, **options)


def number_field(label: Any, initial: float, **options: Any) -> forms.FloatField:
    return forms.FloatField(
        label=label, initial=initial, widget=forms.NumberInput(attrs={"step": "any"}), **options
    )


def _power() -> forms.FloatField:
    return _share(
        gettext_lazy("Power"),
        0.9,
        help_text=gettext_lazy("The chance to find the effect, if it is as large as said."),
    )


def _alpha() -> forms.FloatField:
    return _share(gettext_lazy("Level of the test (alpha)"), 0.05)


class SizeForm(PlainForm):
    """One question of how many; `size` answers it, `rows` are the curve around the answer."""

    of: ClassVar[str] = POWER

    @abstractmethod
    def size(self) -> Size: ...

    @abstractmethod
    def sentence(self, size: Size) -> str: ...

    @abstractmethod
    def rows(self, size: Size) -> pd.DataFrame:
        """Columns n and `of`, around the answer."""

    @property
    def wanted(self) -> float:
        return float(self.cleaned_data[self.of])

    def _powers(self, n: int, power: Callable[[int], float]) -> pd.DataFrame:
        steps = np.clip((STEPS * n).round(), min(n, 4), MOST_TOPICS)
        sizes = np.unique(np.append(steps, n).astype(int))
        return pd.DataFrame({"n": sizes, POWER: [power(int(one)) for one in sizes]})

    def _widths(self, most: float, n: Callable[[float], float]) -> pd.DataFrame:
        widths = [width for width in WIDTHS * self.wanted if width < most]
        return pd.DataFrame({"n": [n(width) for width in widths], WIDTH: widths})

    def _data(self, *names: str) -> list[float]:
        return [self.cleaned_data[name] for name in names]


class CorrelationForm(SizeForm):
    rho = number_field(
        gettext_lazy("Correlation that is expected"),
        -0.281,
        min_value=-1,
        max_value=1,
        help_text=gettext_lazy("Its sign does not matter, if the test is two-sided."),
    )
    power = _power()
    alpha = _alpha()
    method = forms.ChoiceField(
        label=gettext_lazy("Method"), choices=list(METHODS.items()), initial="cohen"
    )
    one_sided = forms.BooleanField(label=gettext_lazy("One-sided test"), required=False)

    def size(self) -> Size:
        return topics_for_correlation(**self.cleaned_data)

    def sentence(self, size: Size) -> str:
        text = _("%(n)s items distinguish a correlation of %(rho)s from 0 with power %(power)s.")
        rho = f"{self.cleaned_data['rho']:g}".replace("-", "\N{MINUS SIGN}")
        return text % {"n": f"{size.n:,}", "rho": rho, "power": power_text(size.power)}

    @property
    def method_text(self) -> str:
        return _("%(method)s.") % {"method": METHODS[self.cleaned_data["method"]]}

    def rows(self, size: Size) -> pd.DataFrame:
        data = self.cleaned_data
        rules = {name: data[name] for name in ("method", "alpha", "one_sided")}
        return self._powers(size.n, lambda n: power_for_correlation(data["rho"], n, **rules))


class MetricsForm(SizeForm):
    method_text = gettext_lazy("Steiger's test of two correlations with the same ratings.")
    first = number_field(
        gettext_lazy("Correlation of one metric with the ratings"), 0.5, min_value=-1, max_value=1
    )
    second = number_field(gettext_lazy("Correlation of the other"), 0.4, min_value=-1, max_value=1)
    between = number_field(
        gettext_lazy("Correlation of the two metrics with each other"),
        0.6,
        min_value=-1,
        max_value=1,
        help_text=gettext_lazy("The more alike two metrics are, the fewer items it takes."),
    )
    power = _power()
    alpha = _alpha()
    one_sided = forms.BooleanField(label=gettext_lazy("One-sided test"), required=False)

    def size(self) -> Size:
        return items_for_metrics(**self.cleaned_data)

    def sentence(self, size: Size) -> str:
        text = _("%(n)s independent items distinguish the two metrics with power %(power)s.")
        return text % {"n": f"{size.n:,}", "power": power_text(size.power)}

    def rows(self, size: Size) -> pd.DataFrame:
        first, second, between = self._data("first", "second", "between")
        rules = {name: self.cleaned_data[name] for name in ("alpha", "one_sided")}
        return self._powers(size.n, lambda n: metric_pair_power(first, second, between, n, **rules))


class KappaForm(SizeForm):
    of = WIDTH
    method_text = gettext_lazy(
        "Fleiss, Cohen and Everitt's variance, times 1 + (candidates of a target − 1) × their "
        "resemblance."
    )
    kappa = _share(gettext_lazy("Kappa that is expected"), 0.8)
    width = number_field(
        gettext_lazy("Width of its interval"),
        0.2,
        min_value=0,
        max_value=2,
        help_text=gettext_lazy("From the lower limit to the upper one."),
    )
    prevalence = _share(
        gettext_lazy("Share of relevant candidates"),
        0.17,
        help_text=gettext_lazy("0.17 where 17 of 100 are relevant."),
    )
    confidence = _share(gettext_lazy("Confidence"), 0.95)
    per_target = number_field(
        gettext_lazy("Candidates of a target"),
        14,
        min_value=1,
        help_text=gettext_lazy("Judgments of one target are not independent of each other."),
    )
    icc = _share(
        gettext_lazy("How much judgments of one target resemble each other"),
        0.1,
        help_text=gettext_lazy("The intraclass correlation: 0 not at all, 1 wholly."),
    )

    def size(self) -> Size:
        return targets_for_kappa(**self.cleaned_data)

    def sentence(self, size: Size) -> str:
        per_target = self.cleaned_data["per_target"]
        text = _(
            "%(n)s candidates, judged twice, give kappa an interval of width %(width)s: "
            "%(targets)s targets."
        )
        if per_target == 1:
            text = _("%(n)s candidates, judged twice, give kappa an interval of width %(width)s.")
        targets = f"{-(-size.n // per_target):,.0f}"
        return text % {"n": f"{size.n:,}", "width": f"{self.wanted:g}", "targets": targets}

    def rows(self, size: Size) -> pd.DataFrame:
        kappa, prevalence, confidence = self._data("kappa", "prevalence", "confidence")
        rules = {"prevalence": prevalence, "confidence": confidence}

        def n_for(width: float) -> float:
            exact = items_for_kappa_width(kappa, width, **rules)
            per_target, icc = self._data("per_target", "icc")
            return whole_items(exact, per_cluster=per_target, icc=icc)

        return self._widths(2, n_for)


class DifferenceForm(SizeForm):
    difference = number_field(
        gettext_lazy("Difference that matters"),
        0.05,
        min_value=0,
        help_text=gettext_lazy(
            "Of the means of two systems by one measure, or of two measures on one scale; among "
            "several systems, of the best and the worst."
        ),
    )
    sd = number_field(
        gettext_lazy("Standard deviation"),
        0.2,
        min_value=0,
        help_text=gettext_lazy(
            "For two: of the items' differences. For several: of one system's values over items."
        ),
    )
    systems = forms.IntegerField(label=gettext_lazy("How many systems"), initial=2, min_value=2)
    power = _power()
    alpha = _alpha()

    def size(self) -> Size:
        difference, sd, power, alpha = self._data("difference", "sd", "power", "alpha")
        systems = self.cleaned_data["systems"]
        if systems == 2:
            return topics_for_difference(difference, sd, power=power, alpha=alpha)
        return topics_for_several(difference, sd, systems, power=power, alpha=alpha)

    def sentence(self, size: Size) -> str:
        return _("%(n)s items distinguish a difference of %(difference)s with power %(power)s.") % {
            "n": f"{size.n:,}",
            "difference": f"{self.cleaned_data['difference']:g}",
            "power": power_text(size.power),
        }

    @property
    def method_text(self) -> str:
        if self.cleaned_data["systems"] == 2:
            return _("Student's paired t test.")
        return _("One-way analysis of variance, after Sakai's topic set size design.")

    def rows(self, size: Size) -> pd.DataFrame:
        difference, sd = self._data("difference", "sd")
        systems, alpha = self.cleaned_data["systems"], self.cleaned_data["alpha"]
        if systems == 2:
            return self._powers(size.n, lambda n: difference_power(difference, sd, n, alpha=alpha))
        return self._powers(
            size.n, lambda n: systems_power(difference, sd, systems, n, alpha=alpha)
        )


class WidthForm(SizeForm):
    of = WIDTH
    method_text = gettext_lazy("Student's t, after Sakai's topic set size design.")
    width = number_field(
        gettext_lazy("Width of the interval"),
        0.1,
        min_value=0,
        help_text=gettext_lazy("From the lower limit to the upper one."),
    )
    sd = number_field(
        gettext_lazy("Standard deviation over items"),
        0.25,
        min_value=0,
        help_text=gettext_lazy("Of a system's values, or of two systems' differences."),
    )
    confidence = _share(gettext_lazy("Confidence"), 0.95)

    def size(self) -> Size:
        return topics_for_interval(**self.cleaned_data)

    def sentence(self, size: Size) -> str:
        text = _("%(n)s items give a mean an interval of width %(width)s, on average.")
        return text % {"n": f"{size.n:,}", "width": f"{self.wanted:g}"}

    def rows(self, size: Size) -> pd.DataFrame:
        sd, confidence = self._data("sd", "confidence")
        return self._widths(
            np.inf, lambda width: topics_for_width(width, sd, confidence=confidence)
        )


def power_text(power: float | None) -> str:
    """Four decimals, rounded down so that what falls short says so."""
    return "–" if power is None else f"{int(power * 10_000) / 10_000:.4f}"
