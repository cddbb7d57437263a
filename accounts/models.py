"""Who signs in: researchers, workers and operators are users of one model."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person with a password; what they may do follows from what belongs to them."""
