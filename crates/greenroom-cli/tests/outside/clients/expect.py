"""What the Python clients expect of the server, and the bodies that they send."""

import hashlib
import json

HELLO = b"Hello, world!\n"
BODY_BYTES_MAX = 2 * 1024 * 1024
UPLOAD_SIZES = (0, 1, 65536, 1024 * 1024, BODY_BYTES_MAX)
DOWNLOAD_BYTES = 1_000_000
PIECE_BYTES = 16 * 1024


def body(size):
    """Bytes that repeat with a period that divides no buffer's size."""
    period = bytes(range(251))
    return (period * (size // len(period) + 1))[:size]


def download():
    """What /bytes/{DOWNLOAD_BYTES} responds with."""
    line = b"abcdefghijklmnopqrstuvwxyz\n"
    chunk = (line * (65536 // len(line) + 1))[:65536]
    return (chunk * (DOWNLOAD_BYTES // len(chunk) + 1))[:DOWNLOAD_BYTES]


def pieces(data):
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]


def equal(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {str(found)[:500]}, not {str(wanted)[:500]}")


def receipt(what, sent, status, response):
    """Checks what /upload answered to the bytes sent."""
    equal(f"{what}: status", status, 200)
    wanted = {"bytes": len(sent), "sha256": hashlib.sha256(sent).hexdigest()}
    equal(what, json.loads(response), wanted)
