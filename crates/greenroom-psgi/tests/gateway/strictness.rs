//! Requests to which Starman 0.4016 or Twiggy 0.1026 respond with 200, and Greenroom's responses:
//! the table of `docs/psgi.md`.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, within};

/// Returns a request's head with these lines, and the bytes behind it.
fn request(line: &str, fields: &str, rest: &str) -> String {
    format!("{line}\r\nConnection: close\r\n{fields}\r\n{rest}")
}

fn get(target: &str) -> String {
    request(&format!("GET {target} HTTP/1.1"), "Host: h\r\n", "")
}

fn get_with(fields: &str) -> String {
    request("GET / HTTP/1.1", fields, "")
}

fn post(fields: &str, body: &str) -> String {
    request("POST / HTTP/1.1", &format!("Host: h\r\n{fields}"), body)
}

fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked\r\n", body)
}

/// Returns the status of the response to these bytes.
async fn status(rig: &Rig, bytes: &str) -> u16 {
    let mut stream = rig.connect().await;
    // The response may come, and the connection end, before all was read.
    stream.write_all(bytes.as_bytes()).await.ok();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.ok();
    let response = String::from_utf8_lossy(&response);
    let status = response
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no status for {bytes:?}: {response}"))
}

async fn assert_all(rig: &Rig, cases: &[(u16, String)]) {
    let mut wrong = Vec::new();
    for (expected, bytes) in cases {
        let status = status(rig, bytes).await;
        if status != *expected {
            let shown: String = bytes.chars().take(100).collect();
            wrong.push(format!("{status} instead of {expected}: {shown:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const APP: &str = "sub { [200, [], ['seen']] };";

#[tokio::test]
async fn what_both_take_and_could_be_read_in_two_ways_is_refused() {
    within(async {
        let rig = Rig::serve(APP).await;
        let cases = [
            (400, get_with("")),
            (400, get_with("Host: a\r\nHost: b\r\n")),
            (400, get_with("Host: a\r\nHost: a\r\n")),
            (400, get_with("Host: a b\r\n")),
            (400, get_with("Host: u@h\r\n")),
            (400, get_with("Host: a/b\r\n")),
            (400, get_with("Host: a:b\r\n")),
            (400, get_with("Host: h\nX: y\r\n")),
            (400, get_with("Host: h\r\nX: a\r\n b\r\n")),
            (400, get_with("Host: h\r\nX : a\r\n")),
            (400, get_with("Host: h\r\nX(a): a\r\n")),
            (400, get_with("Host: h\r\nX@: a\r\n")),
            (400, String::from("GET / HTTP/1.0\n\n")),
            (
                400,
                post(
                    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                    "3\r\nabc\r\n0\r\n\r\n",
                ),
            ),
            (400, post("Content-Length: +3\r\n", "abc")),
            (400, post("Content-Length: 3, 3\r\n", "abc")),
            (
                400,
                post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"),
            ),
            (400, post("Content-Length:\r\n", "")),
            (400, post("Content-Length: abc\r\n", "")),
            (
                400,
                post(
                    "Transfer-Encoding: identity\r\nContent-Length: 3\r\n",
                    "abc",
                ),
            ),
            (
                501,
                post(
                    "Transfer-Encoding: gzip, chunked\r\n",
                    "3\r\nabc\r\n0\r\n\r\n",
                ),
            ),
            (
                400,
                request(
                    "POST / HTTP/1.0",
                    "Transfer-Encoding: chunked\r\n",
                    "3\r\nabc\r\n0\r\n\r\n",
                ),
            ),
            (400, chunked("3 \r\nabc\r\n0\r\n\r\n")),
            (400, request("G@T / HTTP/1.1", "Host: h\r\n", "")),
            (501, request("CONNECT h:80 HTTP/1.1", "Host: h:80\r\n", "")),
            (400, request("GET / HTTP/1.10", "Host: h\r\n", "")),
            (417, post("Expect: other\r\nContent-Length: 3\r\n", "abc")),
        ];
        assert_all(&rig, &cases).await;
        assert_eq!(rig.gateway.status().workers[0].served, 0, "none was seen");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn targets_that_both_take_and_are_none_are_refused() {
    within(async {
        let rig = Rig::serve(APP).await;
        let cases = [
            (400, get("foo")),
            (400, get("?a")),
            (400, get("/a#b")),
            (400, get("/a<b")),
            (400, get("/a`b")),
            (400, get("/?a=\"")),
            (400, get("/?a={b}|^`\\<>")),
            (400, get("/a%00b")),
            (400, get("*")),
            (400, get("http://x/a")),
        ];
        assert_all(&rig, &cases).await;
        assert_eq!(rig.gateway.status().workers[0].served, 0, "none was seen");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_both_take_and_is_too_large_here_is_refused() {
    within(async {
        let rig = Rig::serve(APP).await;
        let fields = |count| "X: a\r\n".repeat(count);
        let cases = [
            (431, get_with(&format!("Host: h\r\n{}", fields(99)))),
            (414, get(&format!("/?{}", "a".repeat(9_000)))),
            (
                431,
                get_with(&format!("Host: h\r\nX: {}\r\n", "a".repeat(70_000))),
            ),
            (413, post("Content-Length: 3000000\r\n", "")),
        ];
        assert_all(&rig, &cases).await;
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_is_odd_and_harmless_is_taken() {
    within(async {
        let rig = Rig::serve(APP).await;
        let cases = [
            (200, request("GET / HTTP/1.0", "", "")),
            (200, get_with("Host: a_b.c\r\n")),
            (200, format!("\r\n{}", get("/"))),
            (200, get_with("Host: h\r\nX: \u{e4}\r\n")),
            (200, request("purge / HTTP/1.1", "Host: h\r\n", "")),
            (200, request("GET / HTTP/1.2", "Host: h\r\n", "")),
            (200, get("//a")),
            (200, get("/a\"b{c}d|e^f\\g")),
            (200, get("/a/../../b")),
            (200, get("/a%2Fb")),
            (200, get("/a%zz")),
            (200, get("/?a[]=b%zz%00")),
            (200, get("http://h/a")),
            (200, request("OPTIONS * HTTP/1.1", "Host: h\r\n", "")),
            (200, post("Content-Length: 003\r\n", "abc")),
            (200, post("", "")),
            (200, chunked("3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n")),
            (
                200,
                post("Transfer-Encoding: Chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
            ),
        ];
        assert_all(&rig, &cases).await;
        rig.end().await;
    })
    .await;
}
