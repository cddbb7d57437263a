"""What a study is of, in words."""

from django.utils.translation import gettext_lazy

from annotation.models import Study
from annotation.pages.stages import stage_facts
from simulation.models import DialogueStudy

OF_DIALOGUES = {
    DialogueStudy.Kind.SWITCHING: gettext_lazy("Keep, take another or leave"),
    DialogueStudy.Kind.OUTCOMES: gettext_lazy("Ticks among what dialogues ended with"),
}


def kind_of(study: Study) -> str:
    """By what annotators do on its pages; a study of recorded dialogues says which it is."""
    kind = stage_facts(study)["kind_of_dialogues"]
    return str(OF_DIALOGUES[DialogueStudy.Kind(kind)]) if kind else study.get_kind_display()
