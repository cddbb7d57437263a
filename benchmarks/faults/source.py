"""What a table was made from, in words that outlive a history that is written anew."""

import subprocess


def source() -> str:
    """The commit, and the tree of `work/` in it, which names its content whatever the commit is
    called: `git rev-parse COMMIT:work` finds it again."""
    commit = _git("describe", "--always", "--dirty")
    return f"commit {commit} (work/ is tree {_git('rev-parse', '--short', 'HEAD:work')})"


def _git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], text=True).strip()
