"""Files of users and tokens, with hashes made by the programs and libraries that people use."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import subprocess
from pathlib import Path


def crypt(password: str, setting: str) -> str:
    """crypt(3) of libxcrypt: bcrypt, yescrypt and SHA-crypt, as the setting says."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    made = library.crypt(password.encode(), setting.encode())
    assert made and not made.startswith(b"*"), (setting, made)
    return made.decode()


def bcrypt(password: str, cost: int = 4) -> str:
    return crypt(password, f"$2y${cost:02d}$abcdefghijklmnopqrstuu")


def yescrypt(password: str) -> str:
    return crypt(password, "$y$j75$k2XAnEHBqQ1Ct2aMXFKNa/")


def sha_crypt(password: str, kind: int) -> str:
    """By `openssl passwd -5` or `-6`."""
    done = subprocess.run(["openssl", "passwd", f"-{kind}", password], check=True, text=True,
                          capture_output=True)
    return done.stdout.strip()


def argon2(password: str, kind: str = "argon2id") -> str:
    """By the C library's own function for texts."""
    library, size = ctypes.CDLL("libargon2.so.1"), ctypes.c_size_t
    text, salt = password.encode(), b"0123456789abcdef"
    output = ctypes.create_string_buffer(200)
    code = getattr(library, f"{kind}_hash_encoded")(
        1, 256, 2, text, size(len(text)), salt, size(len(salt)), size(32), output, size(200))
    assert code == 0, code
    return output.value.decode()


SCHEMES = {
    "bcrypt": bcrypt, "yescrypt": yescrypt, "sha256": lambda password: sha_crypt(password, 5),
    "sha512": lambda password: sha_crypt(password, 6), "argon2id": argon2,
    "argon2i": lambda password: argon2(password, "argon2i"),
}


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def write(file: Path, *lines: str) -> Path:
    """Writes a file in place of another, readable by its owner alone."""
    part = file.with_suffix(".new")
    part.write_text("".join(f"{line}\n" for line in lines))
    part.chmod(0o600)
    part.rename(file)
    return file
