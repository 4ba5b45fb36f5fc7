"""What gateways write to their engine, read and written as another version of the program would."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from pathlib import Path

MAGIC, HEADER, CODE = b"PFSC", struct.Struct("<4sBBHII"), 32
# A field that has to be understood, and one that is skipped by whoever does not know it.
CRITICAL, UNKNOWN = 0x8000, 999


@dataclass
class Record:
    """Everything of a record but its code."""

    major: int
    kind: int
    minor: int
    secret: int
    fields: dict[int, bytes] = field(default_factory=dict)
    body: bytes = b""


class Records:
    """Reads and writes with the first secret of a fleet."""

    def __init__(self, key_file: Path):
        secret = key_file.read_text().splitlines()[0].encode()
        self.key = hashlib.sha256(b"pinfold shared cache: records\0" + secret).digest()
        identity = hashlib.sha256(b"pinfold shared cache: id\0" + self.key).digest()
        self.secret = int.from_bytes(identity[:4], "little")

    def code(self, name: bytes, data: bytes) -> bytes:
        return hmac.digest(self.key, struct.pack("<I", len(name)) + name + data, "sha256")

    def read(self, name: bytes, data: bytes) -> Record:
        """Fails for what is not a record of this fleet under this name."""
        magic, major, kind, minor, secret, size = HEADER.unpack_from(data)
        end = HEADER.size + size
        assert magic == MAGIC and secret == self.secret
        assert hmac.compare_digest(data[end : end + CODE], self.code(name, data[:end]))
        made = Record(major, kind, minor, secret, body=data[end + CODE :])
        place = HEADER.size
        while place < end:
            number, count = struct.unpack_from("<HI", data, place)
            made.fields[number] = data[place + 6 : place + 6 + count]
            place += 6 + count
        return made

    def write(self, name: bytes, record: Record) -> bytes:
        fields = b"".join(
            struct.pack("<HI", number, len(content)) + content for number, content in sorted(record.fields.items()))
        data = HEADER.pack(MAGIC, record.major, record.kind, record.minor, record.secret, len(fields)) + fields
        return data + self.code(name, data) + record.body
