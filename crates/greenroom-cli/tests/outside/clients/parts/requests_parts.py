"""Python's requests, which hands on a chunk when it has read it to its end."""

import requests

from parts import BASE, TIMEOUT, check, parts

session = requests.Session()
session.trust_env = False

with session.get(f"{BASE}/parts", stream=True, timeout=TIMEOUT) as response:
    pieces = response.iter_content(chunk_size=None)
    for part in parts():
        found = b""
        while len(found) < len(part):
            found += next(pieces)
        check(found, part)
        session.get(f"{BASE}/next", timeout=TIMEOUT)
    check(b"".join(pieces), b"")
