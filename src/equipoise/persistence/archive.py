"""The zip archive of a model: two members of JSON, and arrays as bare numbers.

Nothing in it names a type, a function or a file. Its sizes are compared with limits before any of
it is unpacked, no member is inflated beyond the size that it declares, and the number of values in
a JSON text is compared before that is parsed, so that no file makes a machine use more than a few
times what these limits say.
"""

import io
import json
import math
import zipfile
from typing import Any

import numpy as np

from equipoise.arrays import NDArray
from equipoise.exceptions import InvalidInputError

FACTS, MODEL = "equipoise.json", "model.json"
SUFFIX = ".equipoise"

# Bytes of a file, and of all that is in it.
MAX_BYTES = 1 << 30
# So many times its own size may a file unpack to, beyond what any may.
MAX_RATIO = 100
FREE_BYTES = 1 << 26
# Bytes and values of a JSON text, members, and bytes of the table of members.
MAX_JSON_BYTES = 1 << 26
MAX_JSON_VALUES = 1 << 21
MAX_MEMBERS = 1 << 12
MAX_DIRECTORY = 1 << 20

_DTYPES = {
    np.dtype(name).str: np.dtype(name) for name in ["<f8", "<f4", "<i8", "<i4", "<u4", "|u1", "|b1"]
}
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x07"
_TOO_LARGE = "would unpack to more than a model can need"


def packed(members: dict[str, bytes]) -> bytes:
    """The members as one archive; equal members make equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            # Without a date of its own a member has the first that the format knows.
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """The members of an archive of reasonable sizes."""
    # The last record, as a writer without comments leaves it, says how long the table of members
    # is, which otherwise would be read whole.
    if data[-22:-18] != _END or data[-42:-38] == _END_64:
        raise InvalidInputError("it is damaged: its end is missing")
    if int.from_bytes(data[-10:-6], "little") > MAX_DIRECTORY:
        raise InvalidInputError("it holds more members than a model can need")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        listed = archive.infolist()
        names = {member.filename for member in listed}
        if len(names) < len(listed):
            raise InvalidInputError("it holds two members of one name")
        for name in (FACTS, MODEL):
            if name not in names:
                raise InvalidInputError(f"it holds no {name}, so it is not a model of equipoise")
        if len(listed) > MAX_MEMBERS:
            raise InvalidInputError("it holds more members than a model can need")
        if any(member.compress_type not in (0, zipfile.ZIP_DEFLATED) for member in listed):
            raise InvalidInputError("it is compressed in a way that models are not")
        total = sum(member.file_size for member in listed)
        if total > min(MAX_BYTES, FREE_BYTES + MAX_RATIO * len(data)):
            raise InvalidInputError(f"it {_TOO_LARGE}")
        return {member.filename: _read(archive, member) for member in listed}


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member, inflated no further than the size that it declares."""
    # ZipFile.read inflates all that is packed, and cuts afterwards.
    with archive.open(member) as stream:
        data = stream.read(member.file_size)
    if len(data) != member.file_size:
        raise InvalidInputError("it holds a member that is not as long as it says")
    return data


def parsed(text: bytes, name: str) -> Any:
    """The values of a JSON text that is not too long and holds not too many of them."""
    # Every value but the first follows one of these.
    if len(text) > MAX_JSON_BYTES or sum(map(text.count, b"[{,:")) > MAX_JSON_VALUES:
        raise InvalidInputError(f"{name} {_TOO_LARGE}")
    return json.loads(text)


def array_to_bytes(array: NDArray[Any]) -> tuple[dict[str, Any], bytes]:
    """What is said of an array of numbers, and the numbers."""
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise InvalidInputError(f"it holds an array of {array.dtype}, which no model has")
    plain = np.ascontiguousarray(array, dtype=_DTYPES[dtype])
    return {"dtype": dtype, "shape": list(array.shape)}, plain.tobytes()


def array_from_bytes(header: dict[str, Any], data: bytes) -> NDArray[Any]:
    """The array of which this is said."""
    dtype, shape = _DTYPES.get(header["dtype"]), header["shape"]
    if dtype is None or len(shape) > 3 or not all(type(n) is int and n >= 0 for n in shape):
        raise InvalidInputError("it holds an array in an unknown form")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise InvalidInputError("it holds an array that is not as long as it says")
    # A truth value is a byte, of which only 0 and 1 are true or false.
    raw = np.frombuffer(data, dtype=np.uint8 if dtype.kind == "b" else dtype).reshape(shape)
    return raw != 0 if dtype.kind == "b" else raw.astype(dtype.newbyteorder("="))
