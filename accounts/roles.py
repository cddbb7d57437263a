"""What each role may do in a team, or in one study.

One table, so that pages, API, commands and documentation answer from the same place.
"""

from enum import StrEnum

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Permission(StrEnum):
    # Read items, and judgments under pseudonyms.
    VIEW = "view"
    # See which system a candidate is of, and read results; their charts with the data drawn.
    VIEW_SYSTEMS = "view_systems"
    # See who a worker is: ids, comments, histories.
    VIEW_WORKERS = "view_workers"
    # See costs, budgets and payments.
    VIEW_MONEY = "view_money"
    VIEW_AUDIT_LOG = "view_audit_log"
    # Import items, change what is asked.
    EDIT = "edit"
    # Compute results, score metrics, make label sets.
    ANALYSE = "analyse"
    ADJUDICATE = "adjudicate"
    # Take rows and whole results away as files, which the audit log then names.
    EXPORT = "export"
    # Flag, approve, reject, message, block.
    REVIEW = "review"
    # Launch, extend, add assignments, pay bonuses, within budgets.
    SPEND = "spend"
    # Invite people, connect marketplaces, set budgets, archive.
    MANAGE = "manage"
    # Appoint owners, delete.
    OWN = "own"


class Role(TextChoices):
    OWNER = "owner", _("Owner")
    MANAGER = "manager", _("Manager")
    RESEARCHER = "researcher", _("Researcher")
    ADJUDICATOR = "adjudicator", _("Adjudicator")
    ANALYST = "analyst", _("Analyst")
    AUDITOR = "auditor", _("Auditor")

    @property
    def summary(self) -> str:
        """One sentence on what the role is for; the table of permissions is in docs/teams.md."""
        return str(_SUMMARIES[self])


_SUMMARIES = {
    Role.OWNER: _("Can do everything, including deleting studies and appointing owners."),
    Role.MANAGER: _("Can do everything except deleting studies and appointing owners."),
    Role.RESEARCHER: _(
        "Designs studies, launches and pays within budgets, reviews work and analyzes results."
    ),
    Role.ADJUDICATOR: _(
        "Decides where annotators disagree, without seeing which system wrote a response."
    ),
    Role.ANALYST: _(
        "Computes and downloads results; cannot change studies, review work or spend money."
    ),
    Role.AUDITOR: _("Reads results, costs and the audit log; cannot change anything."),
}


_ALL = frozenset(Permission)

PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.OWNER: _ALL,
    Role.MANAGER: _ALL - {Permission.OWN},
    Role.RESEARCHER: _ALL - {Permission.OWN, Permission.MANAGE, Permission.VIEW_AUDIT_LOG},
    Role.ADJUDICATOR: frozenset({Permission.VIEW, Permission.ADJUDICATE}),
    Role.ANALYST: frozenset(
        {Permission.VIEW, Permission.VIEW_SYSTEMS, Permission.ANALYSE, Permission.EXPORT}
    ),
    Role.AUDITOR: frozenset(
        {
            *(Permission.VIEW, Permission.VIEW_SYSTEMS),
            *(Permission.VIEW_MONEY, Permission.VIEW_AUDIT_LOG),
        }
    ),
}


class Scope(TextChoices):
    """What a token is for; it never reaches further than the role of whom it acts for."""

    READ = "read", _("Read studies, results and files, workers under pseudonyms")
    IDENTITIES = "identities", _("Read who workers are")
    MONEY = "money", _("Read costs, budgets and payments")
    WRITE = "write", _("Make and change studies, compute results, adjudicate")
    REVIEW = "review", _("Flag, approve, reject, message, block")
    SPEND = "spend", _("Launch, extend, pay bonuses, within budgets")
    MANAGE = "manage", _("Invite people, set budgets, delete, read the audit log")


SCOPES: dict[Scope, frozenset[Permission]] = {
    Scope.READ: frozenset({Permission.VIEW, Permission.VIEW_SYSTEMS, Permission.EXPORT}),
    Scope.IDENTITIES: frozenset({Permission.VIEW_WORKERS}),
    Scope.MONEY: frozenset({Permission.VIEW_MONEY}),
    Scope.WRITE: frozenset({Permission.EDIT, Permission.ANALYSE, Permission.ADJUDICATE}),
    Scope.REVIEW: frozenset({Permission.REVIEW}),
    Scope.SPEND: frozenset({Permission.SPEND}),
    Scope.MANAGE: frozenset({Permission.MANAGE, Permission.OWN, Permission.VIEW_AUDIT_LOG}),
}


def permissions_of(*roles: str) -> frozenset[Permission]:
    return frozenset().union(*(PERMISSIONS[Role(role)] for role in roles))


def permissions_in_scopes(*scopes: str) -> frozenset[Permission]:
    return frozenset().union(*(SCOPES[Scope(scope)] for scope in scopes))


SYSTEM_VIEWERS = [role for role in Role if Permission.VIEW_SYSTEMS in PERMISSIONS[role]]
