"""The zip archive of a model, looked through before anything in it is believed.

A hostile archive may unpack to more than a machine holds, nest deeper than Python can follow, or
name types that run code. Each is refused here, with the sizes and names read from the archive's
own tables, before skops sees it.
"""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.exceptions import InvalidInputError
from equipoise.models.trusted import ALLOWED

SCHEMA, FACTS = "schema.json", "equipoise.json"

MAX_BYTES = 1 << 30
MAX_SCHEMA_BYTES = 1 << 27
MAX_FACTS_BYTES = 1 << 24
MAX_MEMBERS = 1 << 20
MAX_DEPTH = 200

# In JSON text a quotation mark without a backslash before it begins or ends a string, so these are
# keys; and only skops's own keys have bare numbers, or names of arrays, as values.
_ADDRESS = re.compile(rb'((?<!\\)"__id__": |(?<!\\)"file": ")([0-9]+)')

Member = dict[str, zipfile.ZipInfo]


def checked(data: bytes) -> bytes:
    """The text of the training facts, from an archive that may be given to skops."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = _members(archive)
        facts = archive.read(FACTS)
        schema = json.loads(archive.read(SCHEMA))
        arrays = list(_check_nodes(schema, members))
        if sum(members[name].file_size for name in arrays) > MAX_BYTES:
            raise InvalidInputError(_too_large("its arrays"))
        for name in sorted(set(arrays)):
            _check_array(archive, members[name])
    return facts


def written(dumped: bytes, facts: str) -> bytes:
    """What skops wrote with the facts beside it: equal models and facts make equal bytes.

    skops names objects and arrays by their addresses in memory; here they are numbered.
    """
    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    numbers: dict[bytes, int] = {}

    def number(found: re.Match[bytes]) -> bytes:
        key, address = found.groups()
        return key + str(numbers.setdefault(address, len(numbers) + 1)).encode()

    schema = _ADDRESS.sub(number, members.pop(SCHEMA))
    arrays = {_numbered(name, numbers): data for name, data in members.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**arrays, SCHEMA: schema, FACTS: facts.encode()}.items():
            # Without a date of its own a member has the first that the format knows.
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _numbered(name: str, numbers: dict[bytes, int]) -> str:
    address, dot, ending = name.partition(".")
    return f"{numbers.get(address.encode(), address)}{dot}{ending}"


def _members(archive: zipfile.ZipFile) -> Member:
    found = archive.infolist()
    members = {member.filename: member for member in found}
    if len(members) != len(found):
        raise InvalidInputError("it holds two members of one name")
    for name, limit in ((SCHEMA, MAX_SCHEMA_BYTES), (FACTS, MAX_FACTS_BYTES)):
        if name not in members:
            raise InvalidInputError(f"it holds no {name}, so it is no model of equipoise")
        if members[name].file_size > limit:
            raise InvalidInputError(_too_large(name))
    if len(members) > MAX_MEMBERS or sum(m.file_size for m in found) > MAX_BYTES:
        raise InvalidInputError(_too_large("it"))
    return members


def _too_large(what: str) -> str:
    return f"{what} would unpack to more than a model can need"


def _check_nodes(schema: Any, members: Member) -> Iterator[str]:
    """Refuse unknown types, and name the members that arrays are read from."""
    stack = [(schema, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise InvalidInputError("it nests deeper than a model can")
        if isinstance(value, list):
            stack.extend((item, depth + 1) for item in value)
        elif isinstance(value, dict):
            stack.extend((item, depth + 1) for item in value.values())
            if "__loader__" in value:
                _check_type(value)
            if "file" in value and "__loader__" in value:
                if value["file"] not in members:
                    raise InvalidInputError("it refers to a member that it does not hold")
                yield value["file"]


def _check_type(node: dict[str, Any]) -> None:
    loader, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
    if not isinstance(loader, str) or name not in ALLOWED.get(loader, ()):
        raise InvalidInputError(
            f"it holds an object of type {name[:200]!r}, which no model of equipoise has; a file "
            "that asks for unknown types may want to run code"
        )


def _check_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array whose header asks for other than the bytes that follow it."""
    with archive.open(member) as stream:
        number = np.lib.format.read_magic(stream)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if number not in readers:
            raise InvalidInputError("it holds an array in an unknown form")
        shape, _, dtype = readers[number](stream)
        rest = member.file_size - stream.tell()
    count = 1
    for length in shape:
        count *= length
    if dtype.hasobject or dtype.itemsize == 0 or count * dtype.itemsize != rest:
        raise InvalidInputError("it holds an array that is not as long as it says")
