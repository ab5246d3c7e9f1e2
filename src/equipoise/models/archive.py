"""The zip archive of a model: written with public names, and looked through before it is believed.

A hostile archive may unpack to more than a machine holds, nest deeper than Python can follow, or
name types that run code. Each is refused here, with the sizes and names read from the archive's
own tables, before skops sees it.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.exceptions import InvalidInputError
from equipoise.models.trusted import PACKAGE, check_type, public_names

SCHEMA, FACTS = "schema.json", "equipoise.json"

MAX_BYTES = 1 << 30
MAX_SCHEMA_BYTES = 1 << 27
MAX_FACTS_BYTES = 1 << 24
MAX_MEMBERS = 1 << 20
MAX_DEPTH = 200

Node = dict[str, Any]


def written(dumped: bytes, facts: str) -> bytes:
    """What skops wrote, with public names and the facts beside it.

    Equal models and facts make equal bytes: skops names objects and arrays by their addresses in
    memory, and here they are numbered.
    """
    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop(SCHEMA))
    names, numbers = public_names(), dict[str, int]()
    for node in _nodes(schema):
        public = names.get((node["__module__"], node["__class__"]))
        if public is not None:
            node.update({"__module__": PACKAGE, "__class__": public})
        if isinstance(node.get("__id__"), int):
            node["__id__"] = numbers.setdefault(str(node["__id__"]), len(numbers) + 1)
        if isinstance(node.get("file"), str):
            node["file"] = _numbered(node["file"], numbers)
    arrays = {_numbered(name, numbers): data for name, data in members.items()}
    text = json.dumps(schema, indent=2).encode()
    return _packed({**arrays, SCHEMA: text, FACTS: facts.encode()}, zipfile.ZIP_DEFLATED)


def _numbered(name: str, numbers: dict[str, int]) -> str:
    address, dot, ending = name.partition(".")
    return f"{numbers.setdefault(address, len(numbers) + 1)}{dot}{ending}"


def _packed(members: dict[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            # Without a date of its own a member has the first that the format knows.
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def read_facts(data: bytes) -> bytes:
    """The text of the training facts, from an archive of reasonable size."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _members(archive)
        return archive.read(FACTS)


def checked(data: bytes) -> bytes:
    """The archive with only known types and honest arrays in it, as skops can load it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = _members(archive)
        schema = json.loads(archive.read(SCHEMA))
        arrays = []
        for node in _nodes(schema):
            check_type(node)
            if "file" in node:
                arrays.append(node["file"])
        if any(name not in members for name in arrays):
            raise InvalidInputError("it refers to a member that it does not hold")
        if sum(members[name].file_size for name in arrays) > MAX_BYTES:
            raise InvalidInputError(_too_large("its arrays"))
        needed = sorted(set(arrays))
        for name in needed:
            _check_array(archive, members[name])
        contents = {name: archive.read(name) for name in needed}
    return _packed({**contents, SCHEMA: json.dumps(schema).encode()}, zipfile.ZIP_STORED)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
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


def _nodes(schema: Any) -> Iterator[Node]:
    """Everything in a schema that stands for an object."""
    stack = [(schema, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise InvalidInputError("it nests deeper than a model can")
        if isinstance(value, list):
            stack.extend((item, depth + 1) for item in value)
        elif isinstance(value, dict):
            stack.extend((item, depth + 1) for item in value.values())
            # A class of that name may be the key of a dictionary, and its value then is a node.
            if not isinstance(value.get("__loader__", {}), dict):
                yield value


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
