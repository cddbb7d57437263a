"""What a collection gets for its pools besides runs: files of vectors and catalogues, and vectors
that a model makes here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from retrieval.models import CollectionFile
from retrieval.models.files import NAME_LENGTH

KIND = CollectionFile.Kind


class SourceForm(forms.Form):
    """Vectors of documents, or the catalogue of what can be shown."""

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)


class VectorsForm(forms.Form):
    """Embeddings that a model of this site makes of a catalogue."""

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
        for name, choices in (
            ("of", [(key, one.name) for key, one in self.catalogues.items()]),
            ("model", [(name, name) for name in models]),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    def clean_of(self) -> CollectionFile:
        return self.catalogues[self.cleaned_data["of"]]
