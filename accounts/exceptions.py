"""Errors of this app, with messages for users.

AccountsError
├── NameTaken         another user has the name
├── InvalidAccount    the name or the password cannot be used
├── UserUnknown       no user has that name
├── TeamUnknown       no team has that short name
├── InvalidTeam       the team's name cannot be used
├── InvalidToken      a token of that kind cannot be made
├── LastOwner         the team would be left without an owner
├── ErasureRefused    somebody else must act before the user can be erased
└── RoleTooSmall      what was asked is not for somebody of that role
"""

from error_codes import CorrectableError


class AccountsError(CorrectableError):
    """Base of the app's errors; its text is shown to the user."""


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
    """The requesting user's role does not allow it."""


class InvalidToken(AccountsError):
    """A token of that kind cannot be made."""


class ErasureRefused(AccountsError):
    """Somebody else must act before the user can be erased."""
