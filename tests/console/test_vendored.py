import hashlib

from django.conf import settings

VENDOR = settings.BASE_DIR / "static" / "vendor"
SUMS = {
    name: digest
    for digest, name in (
        line.split(maxsplit=1)
        for line in (VENDOR / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
}


def test_every_vendored_file_is_listed_and_as_it_was_published():
    there = {str(path.relative_to(VENDOR)) for path in VENDOR.glob("*/*")}
    assert there == set(SUMS)
    assert len(there) >= 10
    for name, digest in SUMS.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_every_vendored_library_has_its_licence():
    for folder in (path for path in VENDOR.iterdir() if path.is_dir()):
        assert (folder / "LICENSE").stat().st_size > 0
        assert f"| {folder.name} |" in (VENDOR / "README.md").read_text(encoding="utf-8")
