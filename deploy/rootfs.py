"""What deploy/Dockerfile makes, where no registry of images is in reach: on Debian's own packages.

    python deploy/rootfs.py image FOLDER             the steps of the Dockerfile, in FOLDER/image
    python deploy/rootfs.py bare FOLDER              Debian, Python, make and git, in FOLDER/bare
    python deploy/rootfs.py run FOLDER/image         its CMD, as its user, with its environment
    python deploy/rootfs.py run FOLDER/bare -- bash  any command

--set NAME=VALUE, before these, is what `docker run --env` and `docker build --build-arg` are.

debootstrap takes Debian from where apt takes packages here, and pip uses this machine's settings.
Both need root, and `unshare`; what is mounted is gone when a command ends.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE, COMPOSE = ROOT / "deploy" / "Dockerfile", ROOT / "deploy" / "compose.yaml"
VOLUME = re.compile(r"(?m)^ +- (?:output|backups):(\S+)$")
# Of the image that the Dockerfile begins with: a Python, and the authorities that pip trusts.
OF_THE_IMAGE = ("ca-certificates", "python3", "python3-venv", "python-is-python3")
# What the README asks for, and curl to see what answers.
OF_A_MACHINE = ("ca-certificates", "python3", "python3-venv", "make", "git", "curl")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK = ("/etc/resolv.conf", "/etc/hosts")
PROXIES = re.compile(r"(?i)^((https?|no)_proxy|ssl_cert_file|requests_ca_bundle)$")
# What `docker run` mounts; the file system itself is for reading, as in deploy/compose.yaml.
ENTER = """
root=$1; volumes=$2; shift 2
mount --make-rprivate / && mount --bind "$root" "$root" && mount -t proc proc "$root/proc" || exit 1
while [ "$1" != -- ]; do mount --bind "$1" "$root$1" || exit 1; shift; done
shift
mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm" || exit 1
if [ -n "$volumes" ]; then
  mount -t tmpfs tmpfs "$root/tmp" || exit 1
  for each in $volumes; do mount --bind "$root$each" "$root$each" || exit 1; done
  mount -o remount,bind,ro "$root" || exit 1
fi
# This shell stays the first process there, and root's: it ends with `unshare`, and all with it.
"$@"
exit $?
"""


@dataclass
class Container:
    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "root"
    command: list[str] = field(default_factory=lambda: ["bash"])

    def run(self, command: Sequence[str], **more: str) -> int:
        return subprocess.run(self.words(command, more), check=False).returncode

    def words(
        self, command: Sequence[str], more: Mapping[str, str], volumes: Sequence[str] = ()
    ) -> list[str]:
        pip, paths = pip_settings()
        mounts = [path for path in (*NETWORK, *paths) if self._mount_point(path)]
        proxies = {name: value for name, value in os.environ.items() if PROXIES.match(name)}
        environment = {"HOME": self._home()} | proxies | pip | self.environment | dict(more)
        settings = [f"{name}={value}" for name, value in environment.items()]
        there = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        return [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *("sh", "-c", ENTER, "sh", str(self.root), " ".join(volumes), *mounts, "--"),
            *("chroot", f"--userspec={self.user}", str(self.root), "env", "-i", *settings),
            *("sh", "-c", there),
        ]

    def _home(self) -> str:
        for line in (self.root / "etc/passwd").read_text().splitlines():
            name, *_, home, _shell = line.split(":")
            if name == self.user:
                return home
        return "/"

    def _mount_point(self, path: str) -> bool:
        here, there = Path(path), self.root / path.lstrip("/")
        if here.is_dir():
            there.mkdir(parents=True, exist_ok=True)
        elif here.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.touch()
        return here.exists()

    def store(self) -> None:
        record = {name: value for name, value in asdict(self).items() if name != "root"}
        self.root.with_suffix(".json").write_text(json.dumps(record, indent=1))

    @classmethod
    def load(cls, root: Path) -> "Container":
        path = root.with_suffix(".json")
        return cls(root, **json.loads(path.read_text())) if path.exists() else cls(root)


def pip_settings() -> tuple[dict[str, str], list[str]]:
    """Settings of pip here as variables, and the files and folders that they name."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    settings, paths = {}, []
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        words = shlex.split(value)
        settings["PIP_" + name.rpartition(".")[2].upper().replace("-", "_")] = " ".join(words)
        for word in " ".join(words).split():
            path = word.removeprefix("file://")
            if path.startswith("/"):
                # An index of files may lead to what lies beside it.
                paths.append(str(Path(path).parent) if word.startswith("file://") else path)
    return settings, sorted(set(paths))


class Build:
    def __init__(self, folder: Path, arguments: Mapping[str, str]) -> None:
        self.folder, self.given = folder, arguments
        self.stages: dict[str, Container] = {}
        self.arguments: dict[str, str] = {}

    def make(self) -> Container:
        for word, rest in instructions(DOCKERFILE.read_text()):
            sys.stdout.write(f"{word} {rest}\n")
            sys.stdout.flush()
            getattr(self, f"do_{word.lower()}")(rest)
        self.stage.store()
        return self.stage

    def do_from(self, rest: str) -> None:
        image, _, name = rest.partition(" AS ")
        base = debian(self.folder / "base", image.rpartition("-")[2], OF_THE_IMAGE)
        # The last stage is the image, and the only one without a name.
        self.stage = Container(self.folder / (name or "image"))
        shutil.rmtree(self.stage.root, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", base, self.stage.root], check=True)
        self.stages[name], self.arguments = self.stage, {}

    def do_env(self, rest: str) -> None:
        for each in shlex.split(rest):
            name, _, value = each.partition("=")
            value = Template(value).safe_substitute(self.stage.environment)
            self.stage.environment[name] = value

    def do_arg(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self.arguments[name] = self.given.get(name, value)

    def do_run(self, rest: str) -> None:
        if self.stage.run(["sh", "-c", rest], **self.arguments) != 0:
            raise SystemExit(f"It failed: {rest}")

    def do_copy(self, rest: str) -> None:
        *sources, target = rest.split()
        there = self.stage.root / str(Path(self.stage.folder, target)).lstrip("/")
        if sources[0].startswith("--from="):
            stage = self.stages[sources.pop(0).removeprefix("--from=")]
            for source in sources:
                there.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-a", stage.root / source.lstrip("/"), there], check=True)
            return
        copy_checkout(there, [] if sources == ["."] else sources)

    def do_workdir(self, rest: str) -> None:
        self.stage.folder = rest
        (self.stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def do_user(self, rest: str) -> None:
        self.stage.user = rest

    def do_cmd(self, rest: str) -> None:
        self.stage.command = json.loads(rest)

    def do_expose(self, rest: str) -> None:
        """Its network is this machine's."""

    def do_healthcheck(self, rest: str) -> None:
        """Nobody looks after it."""


def instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word, " ".join(rest.split()) if word != "RUN" else rest


def debian(folder: Path, suite: str, packages: Sequence[str]) -> Path:
    # Of Debian's own packages, from where apt takes them here; made once.
    if not (folder / "usr/bin/python3").exists() or (folder / "debootstrap").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        words = ["--variant=minbase", f"--include={','.join(packages)}", suite, str(folder)]
        subprocess.run(["debootstrap", *words, *_source_of(suite)], check=True)
    return folder


def _source_of(suite: str) -> list[str]:
    """Where apt here takes this suite from; nothing, and so debootstrap's own, where nowhere."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(CREATED_BY) $(SITE)"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    targets = (line.split() for line in listed.stdout.splitlines())
    return [words[2] for words in targets if words[:2] == [suite, "Packages"]][:1]


def copy_checkout(target: Path, names: Sequence[str]) -> None:
    """These files into a folder; without any, all that git has and .dockerignore does not."""
    ignored = (ROOT / ".dockerignore").read_text().split()
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    for name in names or filter(None, listed.stdout.split("\0")):
        parts = Path(name).parts
        leading = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        if not names and any(_is_ignored(each, pattern) for each in leading for pattern in ignored):
            continue
        place = target / (Path(name).name if names else name)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)


def _is_ignored(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch(Path(path).name, pattern.removeprefix("**/"))
    return path.count("/") == pattern.count("/") and fnmatch(path, pattern)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("act", choices=["image", "bare", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs="*")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    settings = dict(each.split("=", 1) for each in options.set)
    folder = options.folder.resolve()
    if options.act == "image":
        Build(folder, settings).make()
    elif options.act == "bare":
        container = Container(debian(folder / "bare", "bookworm", OF_A_MACHINE))
        container.folder = "/srv/assay"
        copy_checkout(container.root / "srv/assay", [])
        container.store()
    else:
        container = Container.load(folder)
        volumes = VOLUME.findall(COMPOSE.read_text()) if container.user != "root" else []
        words = container.words(options.command or container.command, settings, volumes)
        # So that whoever ends this process ends what runs there.
        os.execvp(words[0], words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
