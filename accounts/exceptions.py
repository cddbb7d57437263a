"""Errors of this app, for people to read.

AccountsError
├── NameTaken         another user has the name
├── InvalidAccount    the name or the password cannot be used
├── InvalidTeam       the team's name cannot be used
└── LastOwner         the team would be left without an owner
"""


class AccountsError(Exception):
    """Base of the app's errors; its text is meant for whoever sees it."""


class NameTaken(AccountsError):
    """Another user has this name."""


class InvalidAccount(AccountsError):
    """A name or a password that cannot be used."""


class InvalidTeam(AccountsError):
    """A name that no team can have."""


class LastOwner(AccountsError):
    """A team would be left without an owner."""
