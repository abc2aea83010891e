"""Python's requests: a session's keep-alive, uploads with a length and in chunks, a refused body."""

import sys

import requests

from expect import BODY_BYTES_MAX, DOWNLOAD_BYTES, HELLO, UPLOAD_SIZES, body, download, equal, pieces, receipt

BASE = sys.argv[1]
TIMEOUT = 20

session = requests.Session()
session.trust_env = False


def connections():
    pools = session.get_adapter(BASE).poolmanager.pools
    return sum(pools[key].num_connections for key in pools.keys())


def keep_alive():
    hello = session.get(f"{BASE}/hello", timeout=TIMEOUT)
    equal("/hello", (hello.status_code, hello.content), (200, HELLO))
    head = session.head(f"{BASE}/hello", timeout=TIMEOUT)
    equal("HEAD", (head.status_code, head.headers["content-length"], head.content), (200, str(len(HELLO)), b""))
    bytes_ = session.get(f"{BASE}/bytes/{DOWNLOAD_BYTES}", timeout=TIMEOUT)
    equal("/bytes", (bytes_.status_code, bytes_.content), (200, download()))
    missing = session.get(f"{BASE}/nothing", timeout=TIMEOUT)
    equal("/nothing", missing.status_code, 404)
    for size in UPLOAD_SIZES:
        sent = body(size)
        response = session.post(f"{BASE}/upload", data=sent, timeout=TIMEOUT)
        receipt(f"upload of {size}", sent, response.status_code, response.content)
    sent = body(1024 * 1024)
    response = session.post(f"{BASE}/upload", data=pieces(sent), timeout=TIMEOUT)
    receipt("upload in chunks", sent, response.status_code, response.content)
    equal("connections", connections(), 1)


def refused():
    sent = body(BODY_BYTES_MAX + 1)
    response = session.post(f"{BASE}/upload", data=sent, timeout=TIMEOUT)
    equal("upload over the limit", response.status_code, 413)
    response = session.post(f"{BASE}/upload", data=pieces(sent), timeout=TIMEOUT)
    equal("upload in chunks over the limit", response.status_code, 413)
    hello = session.get(f"{BASE}/hello", timeout=TIMEOUT)
    equal("/hello after refusals", (hello.status_code, hello.content), (200, HELLO))


keep_alive()
refused()
