"""Certificates and keys in PEM files: what is wrong with one is said by the name of the file, since gRPC only says that
no connection came about."""

from __future__ import annotations

import ssl
from pathlib import Path

from stepscope.errors import StepscopeError

_CERTIFICATE, _KEY = "-----BEGIN CERTIFICATE-----", "PRIVATE KEY-----"


class BadPem(StepscopeError):
    """A file with a certificate or key cannot be used."""


def certificates_in(file: Path) -> bytes:
    """The content of a file with one or more certificates.

    Raises:
        BadPem: If it cannot be read, or holds none.
    """
    content = _read(file)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=_text(file, content, _CERTIFICATE))
    except ssl.SSLError as error:
        raise BadPem(
            f"{file}: its certificate cannot be used ({_reason(error)}). Give a certificate in PEM format"
        ) from error
    return content


def pair_in(key: Path, certificate: Path) -> tuple[bytes, bytes]:
    """The contents of the files of a private key and of its certificate.

    Raises:
        BadPem: If one of them cannot be read or holds none, the key is encrypted, or they do not belong together.
    """
    chain, secret = certificates_in(certificate), _read(key)
    text = _text(key, secret, _KEY)
    if "ENCRYPTED" in text:
        raise BadPem(
            f"{key}: the private key is encrypted. Write it without a password: openssl pkey -in FILE -out KEY"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadPem(
                f"{key}: is not the private key of {certificate}. Give the files that were made together"
            ) from error
        raise BadPem(
            f"{key}: its private key cannot be used ({_reason(error)}). Give a private key in PEM format"
        ) from error
    return secret, chain


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadPem(f"{file}: cannot be read ({error.strerror}). Check the paths of the TLS options") from error


def _text(file: Path, content: bytes, begin: str) -> str:
    """The content, if something of a kind begins in it."""
    text = content.decode("ascii", "replace")
    if begin in text:
        return text.encode("ascii", "replace").decode()
    what = "certificate" if begin is _CERTIFICATE else "private key"
    option = "x509" if begin is _CERTIFICATE else "pkey"
    raise BadPem(
        f"{file}: holds no {what} in PEM format (there is no line -----BEGIN). Check the paths of the TLS options, or "
        f"convert it: openssl {option} -inform DER -in FILE -out PEM"
    )


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "unknown format").replace("_", " ").lower()
