"""Archives that lie about their sizes: what is read is never more than what they declare."""

import io
import re
import subprocess
import sys
import zipfile
import zlib

import pytest

from equipoise.persistence import archive

pytest.importorskip("resource", reason="peak memory is measured with the resource module")

DECLARED = 10
INFLATED = 256 << 20
# Loads a file and prints by how many bytes the peak memory of the process has grown.
LOAD = """
import resource, sys
from equipoise.exceptions import InvalidInputError
from equipoise.persistence import load_model
import equipoise.persistence.document
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
try:
    load_model(sys.argv[1])
except InvalidInputError as error:
    print(error, file=sys.stderr)
else:
    sys.exit("it was loaded")
print(peak() - before)
"""


def bomb(*, honest_sum, inflated=INFLATED):
    """An archive whose first member declares 10 bytes and inflates to many."""
    buffer, zeros = io.BytesIO(), bytes(inflated)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(archive.FACTS, zeros)
        made.writestr(archive.MODEL, b"{}")
        told = made.getinfo(archive.FACTS)
    packed = bytearray(buffer.getvalue())
    # Behind the names of both headers of the member are its sum, packed size and size.
    old = told.CRC.to_bytes(4, "little") + told.compress_size.to_bytes(4, "little")
    places = [found.start() for found in re.finditer(re.escape(old), packed)]
    assert len(places) == 2
    for place in places:
        if not honest_sum:
            packed[place : place + 4] = zlib.crc32(zeros[:DECLARED]).to_bytes(4, "little")
        packed[place + 8 : place + 12] = DECLARED.to_bytes(4, "little")
    return bytes(packed)


@pytest.mark.parametrize("honest_sum", [True, False])
def test_a_member_that_inflates_to_more_than_it_declares_takes_no_memory(tmp_path, honest_sum):
    data = bomb(honest_sum=honest_sum)
    allowed = archive.FREE_BYTES + archive.MAX_RATIO * len(data)
    assert allowed < INFLATED / 2
    path = tmp_path / "bomb.equipoise"
    path.write_bytes(data)
    command = [sys.executable, "-c", LOAD, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "cannot be loaded" in done.stderr
    assert int(done.stdout) < allowed


def test_a_member_is_read_as_far_as_it_declares():
    members = archive.unpacked(bomb(honest_sum=False, inflated=5000))
    assert members[archive.FACTS] == bytes(DECLARED)


def test_a_member_that_is_shorter_than_it_declares_is_refused():
    data = archive.packed({archive.FACTS: b"12345", archive.MODEL: b"{}"})
    with zipfile.ZipFile(io.BytesIO(data)) as made:
        crc = made.getinfo(archive.FACTS).CRC.to_bytes(4, "little")
    changed = re.sub(
        re.escape(crc) + b"(.{4}).{4}",
        lambda found: crc + found[1] + (1000).to_bytes(4, "little"),
        data,
        flags=re.DOTALL,
    )
    assert changed != data
    with pytest.raises(ValueError, match="not as long as it says"):
        archive.unpacked(changed)
