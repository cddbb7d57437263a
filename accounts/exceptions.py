"""Errors of this app, for people to read.

AccountsError
├── NameTaken         another user has the name
├── InvalidAccount    the name or the password cannot be used
├── UserUnknown       no user has that name
├── TeamUnknown       no team has that short name
├── InvalidTeam       the team's name cannot be used
├── LastOwner         the team would be left without an owner
└── RoleTooSmall      what was asked is not for somebody of that role
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


class UserUnknown(AccountsError):
    """No user has that name."""


class TeamUnknown(AccountsError):
    """No team has that short name."""


class RoleTooSmall(AccountsError):
    """The role of whoever asks does not allow it."""
