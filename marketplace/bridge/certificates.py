"""The bridge's own certificate authority, good for Amazon's two names and for nothing else."""

import os
import secrets
import ssl
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from marketplace.api.authentication import AMAZON_HOSTS
from marketplace.exceptions import BridgeUnfit

AUTHORITY_FILE, BUNDLE_FILE = "authority.pem", "bundle.pem"
AUTHORITY_LIFE = timedelta(days=3650)
SERVER_LIFE = timedelta(days=365)
# Clocks of two programs on one machine agree; those of a container and its host may not quite.
BACKDATED_BY = timedelta(hours=1)
READ_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> bytes:
        return self.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ) + self.certificate.public_bytes(Encoding.PEM)


def prepare_authority(folder: Path) -> tuple[Authority, Path]:
    """The folder's authority, made if there is none, and the bundle that programs trust: the usual
    authorities and ours, so that other hosts work, too."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / AUTHORITY_FILE
    authority = _read(file) if file.exists() else _create(file)
    if authority.certificate.not_valid_after_utc < datetime.now(UTC) + SERVER_LIFE:
        file.unlink()
        authority = _create(file)
    ours = authority.certificate.public_bytes(Encoding.PEM)
    bundle = folder / BUNDLE_FILE
    _replace(bundle, Path(certifi.where()).read_bytes() + b"\n" + ours)
    return authority, bundle


def server_context(authority: Authority) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = Authority(key, issue_certificate(authority, key, list(AMAZON_HOSTS))).pem()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with TemporaryDirectory() as folder:  # readable by its owner only
        file = Path(folder, "server.pem")
        file.write_bytes(pem)
        context.load_cert_chain(file)
    return context


def issue_certificate(
    authority: Authority, key: ec.EllipticCurvePrivateKey, hosts: list[str]
) -> x509.Certificate:
    # Clients refuse it for other names: the authority's certificate is limited to Amazon's two.
    builder = _builder(authority.certificate.subject, _name("Assay bridge"), SERVER_LIFE)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    return (
        builder.public_key(key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )


def _create(file: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Assay MTurk bridge {secrets.token_hex(4)}")
    certificate = (
        _builder(name, name, AUTHORITY_LIFE)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.NameConstraints([x509.DNSName(host) for host in AMAZON_HOSTS], None), critical=True
        )
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    draft = file.with_name(f".{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(Authority(key, certificate).pem())
    try:
        os.link(draft, file)  # fails where one is there: nothing is ever written over
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return _read(file)


def _read(file: Path) -> Authority:
    if file.stat().st_mode & READ_BY_OTHERS:
        raise BridgeUnfit(
            f"{file} holds a private key, and others may read it. Delete the file, and the bridge "
            "makes a new one; programs must then be given the new bundle.",
            code="readable_by_others",
        )
    pem = file.read_bytes()
    try:
        key = load_pem_private_key(pem, password=None)
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise BridgeUnfit(
            f"{file} is not a certificate authority of the bridge's. Delete it, or name another "
            "--folder.",
            code="not_an_authority",
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BridgeUnfit(f"{file} has another kind of key than the bridge's. Delete it.")
    return Authority(key, certificate)


def _replace(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{secrets.token_hex(8)}")
    draft.write_bytes(content)
    draft.replace(file)


def _builder(issuer: x509.Name, subject: x509.Name, life: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED_BY)
        .not_valid_after(now + life)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
