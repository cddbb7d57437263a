"""What can go wrong with the site as a whole.

SiteError
├── BackupRefused    the database is not in a state of which a backup is of use
├── BackupUnreadable the file is no backup, or is damaged
├── RestoreRefused   the backup must not be written into this site
└── RestoreFailed    what was restored is not what the backup holds
"""

from error_codes import CodedError


class SiteError(CodedError):
    """Something an operator can mend; its text says what and how."""


class BackupRefused(SiteError):
    """The database is not in a state of which a backup is of use."""


class BackupUnreadable(SiteError):
    """The file is no backup, or is damaged."""


class RestoreRefused(SiteError):
    """The backup must not be written into this site."""


class RestoreFailed(SiteError):
    """What was restored is not what the backup holds."""
