import datetime
import ipaddress
import json
import socket
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME, PUBLIC = "market.example", "93.184.216.34"


class Site:
    def __init__(self, folder=None):
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                site.hosts.append(self.headers["Host"])
                body = json.dumps({"AvailableBalance": "5.00"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self):
                site.hosts.append(self.path)
                self.send_error(403)

            def log_message(self, *message):
                """Say nothing."""

        self.hosts, self.names = [], []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if folder is not None:
            self.server.socket = self._secured(folder)
        self.thread = Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def _secured(self, folder):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        return context.wrap_socket(self.server.socket, server_side=True)

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def write_certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(1))
    builder = builder.not_valid_after(now + datetime.timedelta(1))
    names = x509.SubjectAlternativeName([x509.DNSName(NAME)])
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


class Resolver:
    """Says of the name what comes next, at last this machine; whatever is public is routed here."""

    def __init__(self, *answers):
        self.answers, self.n_lookups = list(answers), 0
        self.real = socket.getaddrinfo

    def __call__(self, host, port, *arguments, **options):
        if host == NAME:
            self.n_lookups += 1
            host = self.answers.pop(0) if self.answers else "127.0.0.1"
            entries = self.real(host, port, 0, socket.SOCK_STREAM)
            return entries if port is None else [self._here(entry) for entry in entries]
        entries = self.real(host, port, *arguments, **options)
        is_public = ipaddress.ip_address(host).is_global
        return [self._here(entry) for entry in entries] if is_public else entries

    @staticmethod
    def _here(entry):
        return (*entry[:4], ("127.0.0.1", entry[4][1]))


def resolve(monkeypatch, *answers):
    resolver = Resolver(*answers)
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    monkeypatch.setattr("work.addresses.getaddrinfo", resolver)
    return resolver
