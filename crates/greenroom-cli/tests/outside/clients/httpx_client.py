"""Python's httpx: a client's keep-alive, uploads with a length and in chunks, a refused body."""

import sys

import httpx

from expect import BODY_BYTES_MAX, DOWNLOAD_BYTES, HELLO, UPLOAD_SIZES, body, download, equal, pieces, receipt

BASE = sys.argv[1]

client = httpx.Client(base_url=BASE, timeout=20, trust_env=False)
local_addresses = set()


def ask(method, path, **options):
    with client.stream(method, path, **options) as response:
        stream = response.extensions["network_stream"]
        local_addresses.add(stream.get_extra_info("client_addr"))
        response.read()
        return response


def keep_alive():
    hello = ask("GET", "/hello")
    equal("/hello", (hello.status_code, hello.content), (200, HELLO))
    head = ask("HEAD", "/hello")
    equal("HEAD", (head.status_code, head.headers["content-length"], head.content), (200, str(len(HELLO)), b""))
    bytes_ = ask("GET", f"/bytes/{DOWNLOAD_BYTES}")
    equal("/bytes", (bytes_.status_code, bytes_.content), (200, download()))
    equal("/nothing", ask("GET", "/nothing").status_code, 404)
    for size in UPLOAD_SIZES:
        sent = body(size)
        response = ask("POST", "/upload", content=sent)
        receipt(f"upload of {size}", sent, response.status_code, response.content)
    sent = body(1024 * 1024)
    response = ask("POST", "/upload", content=pieces(sent))
    receipt("upload in chunks", sent, response.status_code, response.content)
    equal("connections", len(local_addresses), 1)


def refused():
    sent = body(BODY_BYTES_MAX + 1)
    equal("upload over the limit", ask("POST", "/upload", content=sent).status_code, 413)
    response = ask("POST", "/upload", content=pieces(sent))
    equal("upload in chunks over the limit", response.status_code, 413)
    hello = ask("GET", "/hello")
    equal("/hello after refusals", (hello.status_code, hello.content), (200, HELLO))


keep_alive()
refused()
