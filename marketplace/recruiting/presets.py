"""What panels send and whither their participants return, as settings of the panel with links."""

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True)
class Preset:
    """A panel's own settings. Their sources are the vendors' pages on links and redirects."""

    panel: str
    worker_parameter: str
    study_parameter: str = ""
    session_parameter: str = ""
    redirect_url: str = ""
    # Whether that address says that somebody has finished, and nothing else.
    is_for_completed: bool = False
    # How the panel marks the place of a value in the link; empty: it adds its parameters itself.
    mark: str = ""

    def study_values(self) -> dict[str, Any]:
        """What of it a study keeps."""
        values = asdict(self)
        del values["mark"]
        return values


PRESETS = {
    "prolific": Preset(
        "Prolific",
        worker_parameter="PROLIFIC_PID",
        study_parameter="STUDY_ID",
        session_parameter="SESSION_ID",
        redirect_url="https://app.prolific.com/submissions/complete?cc={code}",
        mark="{{%NAME%}}",
    ),
    "connect": Preset(
        "CloudResearch Connect",
        worker_parameter="participantId",
        study_parameter="projectId",
        session_parameter="assignmentId",
        redirect_url="https://connect.cloudresearch.com/participant/project/{study}/complete",
        is_for_completed=True,
    ),
    "sona": Preset(
        "SONA",
        worker_parameter="survey_code",
        redirect_url="https://YOUR-SITE.sona-systems.com/webstudy_credit.aspx"
        "?experiment_id=EXPERIMENT&credit_token=TOKEN&survey_code={worker}",
        is_for_completed=True,
        mark="%SURVEY_CODE%",
    ),
}


def link_query(panel: str, names: tuple[str, ...]) -> str:
    """What goes behind the study's link at this panel, which fills in the ids."""
    known = {preset.panel: preset.mark for preset in PRESETS.values()}
    mark = known.get(panel, PRESETS["prolific"].mark)
    pairs = [(name, mark.replace("NAME", name)) for name in names if name]
    return f"?{urlencode(pairs, safe='{}%')}" if mark and pairs else ""
