"""Which kind of device somebody comes with, by what its browser says, and whether a study takes it.

A browser that says nothing known is let in: a study is refused to nobody on a guess. Tablets that
call themselves computers, as iPads do, count as what they say.
"""

import re

from marketplace.models import RecruitedStudy

DESKTOP, TABLET, MOBILE = "desktop", "tablet", "mobile"
TABLETS = re.compile(r"iPad|Tablet|PlayBook|Silk(?!.*Mobile)|Android(?!.*Mobile)", re.IGNORECASE)
TELEPHONES = re.compile(r"iPhone|iPod|Mobi|Windows Phone", re.IGNORECASE)
COMPUTERS = re.compile(r"Windows NT|Macintosh|X11|CrOS|Linux", re.IGNORECASE)


def device_of(user_agent: str) -> str:
    """The kind of device, one of Prolific's three words; empty where it cannot be told."""
    kinds = ((TABLET, TABLETS), (MOBILE, TELEPHONES), (DESKTOP, COMPUTERS))
    return next((kind for kind, pattern in kinds if pattern.search(user_agent)), "")


def is_compatible(study: RecruitedStudy, user_agent: str) -> bool:
    """Whether the study is for devices such as this."""
    device = device_of(user_agent)
    return not study.devices or not device or device in study.devices
