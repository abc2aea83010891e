//! The files in `examples/psgi`, used as their users would.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::thread;

use futures_util::{SinkExt, StreamExt};
use sha2::{Digest, Sha256};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::http;
use crate::site::{Site, repository, sum};

#[test]
fn every_example_has_a_test() {
    let tested = HashSet::from([
        "echo_async.psgi",
        "echo_blocking.psgi",
        "hello.psgi",
        "mojo.psgi",
        "sse.psgi",
        "stack.psgi",
        "upload.psgi",
        "websocket.psgi",
    ]);
    let files = std::fs::read_dir(repository("examples/psgi")).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let untested: Vec<_> = files.filter(|file| !tested.contains(&**file)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn hello() {
    let mut site = Site::example("hello.psgi", &[]);
    let response = site.get("/");
    assert_eq!((response.status, &*response.text()), (200, "Hello world\n"));
    let head = http::request(site.address(), "HEAD", "/", &[], b"");
    assert_eq!(head.field("content-length"), Some("12"));
    assert!(head.body.is_empty());
    site.end(0);
}

/// One after the other they would take 400 s, far longer than a client waits.
#[test]
fn one_worker_echoes_to_200_at_once() {
    let mut site = Site::example("echo_async.psgi", &["--workers", "1"]);
    assert!(site.get("/").text().contains("<form>"));
    echo_to_all(&site, 200);
    let status = site.await_status(|status| sum(status, "served") == 201);
    assert_eq!(status["workers"].as_array().map(Vec::len), Some(1));
    assert_eq!(status["restarts"], 0);
    site.end(0);
}

/// One after the other they would take 40 s, longer than a client waits.
#[test]
fn twenty_workers_echo_to_20_at_once() {
    let mut site = Site::example("echo_blocking.psgi", &["--workers", "20"]);
    echo_to_all(&site, 20);
    site.await_status(|status| sum(status, "served") == 20);
    site.end(0);
}

fn echo_to_all(site: &Site, count: u32) {
    let paths = (0..count).map(|number| format!("/?field=number+{number}+%3Cb%3E"));
    let asked = paths.map(|path| http::begin(site.address(), "GET", &path, &[], b""));
    let asked: Vec<_> = asked.collect();
    for (number, asked) in asked.into_iter().enumerate() {
        let response = http::finish(asked);
        let said = format!("You said: number {number} &lt;b&gt;<br>");
        assert!(response.text().contains(&said), "{response:?}");
    }
}

#[test]
fn a_stack_of_middleware() {
    let mut site = Site::example("stack.psgi", &["--workers", "1"]);
    let source = std::fs::read(crate::site::example("hello.psgi")).unwrap();
    assert!(site.get("/source/hello.psgi").body == source);
    assert_eq!(site.get("/source/none").status, 404);

    let first = site.get("/");
    assert!(first.text().starts_with("Visit 1\n"), "{first:?}");
    assert_eq!(first.field("content-encoding"), None);
    let cookie = first.field("set-cookie").expect("a session is begun");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());

    let gzip = [&*cookie, "Accept-Encoding: gzip"];
    let second = http::request(site.address(), "GET", "/", &gzip, b"");
    assert_eq!(second.field("content-encoding"), Some("gzip"));
    assert!(second.body.starts_with(b"\x1f\x8b"), "{second:?}");
    assert!(second.body.len() < first.body.len() / 4);

    let third = http::request(site.address(), "GET", "/", &[&cookie], b"");
    assert!(third.text().starts_with("Visit 3\n"), "{third:?}");
    site.end(0);
}

#[test]
fn mojolicious() {
    let mut site = Site::example("mojo.psgi", &["--workers", "2"]);
    assert_eq!(site.get("/").text(), "Hello from Mojolicious\n");
    assert_eq!(
        site.get("/hello/J%C3%BCrgen").text(),
        r#"{"hello":"Jürgen"}"#
    );
    assert_eq!(site.get("/none").status, 404);
    site.end(0);
}

#[tokio::test]
async fn a_websocket() {
    let mut site = Site::example("websocket.psgi", &[]);
    assert_eq!(site.get("/").status, 426);
    let connection = tokio::net::TcpStream::connect(site.address())
        .await
        .unwrap();
    let url = format!("ws://{}/", site.address());
    let (mut socket, _) = client_async(url, connection).await.unwrap();
    let messages = [
        Message::text("hällo"),
        Message::text(""),
        Message::binary(vec![7; 60_000]),
    ];
    for message in messages {
        socket.send(message.clone()).await.unwrap();
        assert!(socket.next().await.unwrap().unwrap() == message);
    }
    socket.send(Message::Ping("7".into())).await.unwrap();
    let pong = socket.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("7".into()));
    socket.close(None).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_close());
    assert!(socket.next().await.is_none());
    site.end(0);
}

#[test]
fn server_sent_events() {
    let mut site = Site::example("sse.psgi", &["--workers", "1"]);
    let listening = http::begin(site.address(), "GET", "/", &[], b"");
    let mut lines = BufReader::new(listening).lines().map(Result::unwrap);
    let head: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(head[0].starts_with("HTTP/1.1 200 "), "{head:?}");
    let head = head.join("\n").to_lowercase();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    let events = lines.by_ref().filter(|line| line.starts_with("data: "));
    assert_eq!(events.take(2).count(), 2);
    // The application notices that the client is gone.
    drop(lines);
    site.await_status(|status| sum(status, "waiting") == 0);
    site.end(0);
}

#[test]
fn uploads_of_all_sizes() {
    let mut site = Site::example("upload.psgi", &["--workers", "2"]);
    // In memory, at its limit, and in a file.
    for size in [1, 65_536, 65_537, 2_000_000] {
        let body: Vec<u8> = (0..=250).cycle().take(size).collect();
        let digest = hex::encode(Sha256::digest(&body));
        let address = site.address();
        let expected = format!("{size} bytes, SHA-256 {digest}\n");
        thread::scope(|scope| {
            let plain = scope.spawn(|| http::request(address, "POST", "/", &[], &body));
            let chunked = scope.spawn(|| {
                let chunks = [format!("{size:x}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
                let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
                http::finish(http::send(address, &[head.as_bytes(), &chunks].concat()))
            });
            assert_eq!(plain.join().unwrap().text(), expected);
            assert_eq!(chunked.join().unwrap().text(), expected);
        });
    }
    site.end(0);
}
