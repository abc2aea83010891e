"""Python's httpx."""

import httpx

from parts import BASE, TIMEOUT, check, parts

client = httpx.Client(base_url=BASE, timeout=TIMEOUT, trust_env=False)

with client.stream("GET", "/parts") as response:
    pieces = response.iter_raw()
    for part in parts():
        found = b""
        while len(found) < len(part):
            found += next(pieces)
        check(found, part)
        client.get("/next")
    check(b"".join(pieces), b"")
