"""Python's requests (HTTP/1.1) and httpx (HTTP/2 too) over TLS, on one connection each."""

import hashlib
import ssl
import sys

import httpx
import requests

BASE, ROOTS = sys.argv[1:3]
BODY_BYTES = 5_000_000
LONG_BYTES = 20_000_000
TIMEOUT = 60
BODY = (bytes(range(251)) * (BODY_BYTES // 251 + 1))[:BODY_BYTES]
SUM = hashlib.sha256(BODY).hexdigest()


def pieces():
    for start in range(0, BODY_BYTES, 100_000):
        yield BODY[start : start + 100_000]


def equal(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {str(found)[:500]}, not {wanted}")


def visit(get, post):
    for _ in range(3):
        equal("/hello", get(f"{BASE}/hello").content, b"Hello, world!\n")
    for body in (BODY, pieces()):
        equal("/upload", post(f"{BASE}/upload", body).json(), {"bytes": BODY_BYTES, "sha256": SUM})
    equal("/bytes", len(get(f"{BASE}/bytes/{LONG_BYTES}").content), LONG_BYTES)


session = requests.Session()
session.trust_env = False
session.verify = ROOTS
visit(
    lambda url: session.get(url, timeout=TIMEOUT),
    lambda url, body: session.post(url, data=body, timeout=TIMEOUT),
)
pools = session.get_adapter(BASE).poolmanager.pools
equal("connections", sum(pools[key].num_connections for key in pools.keys()), 1)

for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    for http2 in (False, True):
        context = ssl.create_default_context(cafile=ROOTS)
        context.minimum_version = context.maximum_version = version
        with httpx.Client(http2=http2, verify=context, timeout=TIMEOUT, trust_env=False) as client:
            spoken = client.get(f"{BASE}/hello").http_version
            equal("protocol", spoken, "HTTP/2" if http2 else "HTTP/1.1")
            visit(client.get, lambda url, body: client.post(url, content=body))
