"""What the Python clients that read part by part share."""

import sys

BASE = sys.argv[1]
TIMEOUT = 20


def parts():
    """The parts of /parts, in order. Each is made when the one before was acknowledged by /next."""
    for number, length in enumerate(sys.argv[2:]):
        yield bytes([ord("a") + number]) * int(length)


def check(found, wanted):
    if found != wanted:
        raise SystemExit(f"{str(found)[:200]}, not {str(wanted)[:200]}")
