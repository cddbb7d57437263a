from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.db.models import Prefetch
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from console.forms import PlainForm, offer_choices
from error_codes import CodedText
from results.models import Result
from retrieval.models import Collection, CollectionFile, FileFit, ResultType, SampleFit
from retrieval.models.collections import NAME_LENGTH

SOURCES = (CollectionFile.Kind.EMBEDDINGS, CollectionFile.Kind.CATALOGUE)
KIND = CollectionFile.Kind


@dataclass(frozen=True)
class SourceRow:
    file: CollectionFile

    @cached_property
    def fits(self) -> list[FileFit]:
        return list(self.file.fits.all())

    @cached_property
    def sample_fit(self) -> SampleFit | None:
        """Of the newest sample, whose targets a pool is of unless others are chosen."""
        return next(iter(self.file.sample_fits.all()), None)

    @property
    def is_foreign(self) -> bool:
        return any(not fit.n_known for fit in self.fits)

    @property
    def sentences(self) -> list[str]:
        documents = self._documents() if self.fits else []
        targets = [_of_sample(self.sample_fit)] if self.sample_fit else []
        topics = [self._topics()] if self.fits and self._tells_of_topics else []
        return [*documents, *targets, *topics]

    @property
    def _tells_of_topics(self) -> bool:
        """Whether topics of runs are its documents, or no sample says what targets are."""
        return self.sample_fit is None or any(fit.n_known_topics for fit in self.fits)

    def _documents(self) -> list[str]:
        lacking = [fit for fit in self.fits if fit.n_known < fit.n_documents]
        if not lacking:
            n = len(self.fits)
            text = ngettext(
                "Knows every document of the run.", "Knows every document of the {n} runs.", n
            )
            return [CodedText(text.format(n=n), code="documents_known")]
        return [_sentence(fit) for fit in lacking]

    def _topics(self) -> str:
        fit = max(self.fits, key=lambda fit: fit.n_topics)
        if not fit.n_known_topics:
            return CodedText(
                _("No topic is one of its documents: targets are shown by name."),
                code="no_topic_known",
            )
        return CodedText(
            _("{n} of {total} topics are among its documents.").format(
                n=f"{fit.n_known_topics:,}", total=f"{fit.n_topics:,}"
            ),
            code="topics_known",
        )


def _of_sample(fit: SampleFit) -> str:
    if not fit.n_known:
        text = _("No target of sample {number} is one of its documents: they are shown by name.")
        return CodedText(text.format(number=fit.sample.number), code="no_target_known")
    return CodedText(
        _("{n} of {total} targets of sample {number} are among its documents.").format(
            n=f"{fit.n_known:,}", total=f"{fit.n_targets:,}", number=fit.sample.number
        ),
        code="targets_known",
    )


def _sentence(fit: FileFit) -> str:
    if not fit.n_known:
        text = _("Knows no document of {run}: are their names the same in both files?")
        return CodedText(text.format(run=fit.run.name), code="no_document_known")
    return CodedText(
        _("Knows {n} of {total} documents of {run}.").format(
            n=f"{fit.n_known:,}", total=f"{fit.n_documents:,}", run=fit.run.name
        ),
        code="some_documents_known",
    )


def list_sources(collection: Collection) -> list[SourceRow]:
    fits = FileFit.objects.select_related("run").defer("run__faults", "run__warnings")
    rows = collection.files.filter(kind__in=SOURCES).defer("faults")
    newest = Result.objects.of(collection, ResultType.TARGETS)[:1]
    of_sample = SampleFit.objects.filter(sample__in=list(newest)).select_related("sample")
    related = (Prefetch("fits", fits), Prefetch("sample_fits", of_sample))
    return [SourceRow(file) for file in rows.prefetch_related(*related)]


class SourceForm(PlainForm):
    kind = forms.ChoiceField(
        label=gettext_lazy("What it is"),
        choices=[
            (KIND.CATALOGUE, gettext_lazy("the catalogue: titles and pictures")),
            (KIND.EMBEDDINGS, gettext_lazy("embeddings: a vector for each document")),
        ],
    )
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "A catalogue is a table with the columns docno, title and image, or a zip of it with "
            "the pictures. Embeddings are Parquet, or a zip with a .npy file and an .ids file "
            "that has a name a line."
        ),
        allow_empty_file=True,
    )
    name = forms.CharField(
        label=gettext_lazy("Name (optional)"), required=False, max_length=NAME_LENGTH
    )


class VectorsForm(forms.Form):
    of = forms.ChoiceField(label=gettext_lazy("Catalogue"))
    part = forms.ChoiceField(
        label=gettext_lazy("Made of"),
        choices=[
            ("texts", gettext_lazy("its texts: the column title")),
            ("pictures", gettext_lazy("its pictures")),
        ],
    )
    model = forms.ChoiceField(
        label=gettext_lazy("By the model"),
        help_text=gettext_lazy(
            "Of sentence-transformers. Whoever runs this site names further ones in "
            "EMBEDDING_MODELS; for pictures it takes one that reads them."
        ),
    )

    def __init__(
        self, files: Sequence[CollectionFile], models: Sequence[str], *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"label_suffix": "", "prefix": "vectors"} | kwargs)
        self.catalogues = {str(one.pk): one for one in files if one.kind == KIND.CATALOGUE}
        offer_choices(
            self,
            of=[(key, one.name) for key, one in self.catalogues.items()],
            model=[(name, name) for name in models],
        )

    def clean_of(self) -> CollectionFile:
        return self.catalogues[self.cleaned_data["of"]]
