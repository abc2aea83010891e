//! Each example is started on a free port, asked something, and stopped.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use greenroom_test_servers::NatsServer;
use program::{Example, example};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

#[test]
fn hello_greets() {
    let hello = example!("hello").start();
    assert_eq!(hello.get("/").body, "Hello, world!\n");
    assert_eq!(hello.get("/Ada").body, "Hello, Ada!\n");
}

#[test]
fn echo_serves_many_at_once_blocking_or_not() {
    let echo = example!("echo").start();
    assert!(echo.get("/").body.contains("<form>"));
    for path in ["/?field=a%3Cb", "/blocking?field=a%3Cb"] {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..40).map(|_| scope.spawn(|| echo.get(path))).collect();
            for response in asked {
                let response = response.join().unwrap();
                assert!(
                    response.body.contains("You said: a&lt;b<br>"),
                    "{response:?}"
                );
            }
        });
        // One after the other they would take 80 s, and a client here has a minute's patience.
        assert!(begin.elapsed() >= Duration::from_secs(2));
    }
}

#[test]
fn a_proxy_has_what_rust_has_not() {
    let upstream = example!("hello").start();
    let proxy = example!("reverse_proxy").argument(format!("http://{}", upstream.address));
    let proxy = proxy.start();
    assert_eq!(proxy.get("/rust").body, "Hello from Rust\n");
    // More than the runs on a stage that make a route one of the loops'.
    for _ in 0..100 {
        assert_eq!(proxy.get("/Ada").body, "Hello, Ada!\n");
    }
    let status: Value = serde_json::from_str(&proxy.get("/upstreams").body).unwrap();
    assert_eq!(status["upstreams"][0]["requests"], 100);
    drop(upstream);
    assert_eq!(proxy.get("/Ada").status, 502);
}

#[test]
fn a_proxy_tells_its_upstream_of_the_client() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    let proxy = example!("reverse_proxy").argument(upstream).start();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        stream.write_all(b"HTTP/1.1 204 Fine\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    assert_eq!(proxy.get("/a").status, 204);
    let asked = asked.join().unwrap();
    assert!(asked.contains("x-forwarded-for: 127.0.0.1\r\n"), "{asked}");
}

#[test]
fn state_is_shared_by_requests() {
    let state = example!("state").start();
    assert_eq!(state.get("/").body, "visit 1\n");
    assert_eq!(state.get("/").body, "visit 2\n");
    assert_eq!(state.get("/colours/sky").status, 404);
    assert_eq!(state.send("PUT", "/colours/sky", "", "blue").status, 204);
    assert_eq!(state.get("/colours/sky").body, "blue\n");
}

#[test]
fn a_counter_is_the_same_wherever_it_is_asked_and_outlives_its_node() {
    let alone = example!("cluster").start();
    assert_eq!(alone.send("POST", "/counters/visits", "", "").body, "1\n");
    let server = NatsServer::settings().jet_stream().start();
    let one = example!("cluster").argument(server.url()).start();
    let two = example!("cluster").argument(server.url()).start();
    for (node, value) in [(&one, "1\n"), (&two, "2\n"), (&one, "3\n")] {
        let counted = node.send("POST", "/counters/visits", "", "");
        assert_eq!((counted.status, &*counted.body), (200, value));
    }
    drop(one); // by SIGKILL
    // Until the lease of the killed node has ended, its counter may not be asked.
    let value = loop {
        let counted = two.send("POST", "/counters/visits", "", "");
        if counted.status == 200 {
            break counted.body;
        }
    };
    assert_eq!(value, "4\n");
}

#[test]
fn notes_are_created_read_updated_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.db");
    let notes = example!("crud_sqlite").argument(&file).start();
    let json = "content-type: application/json\r\n";
    let created = notes.send("POST", "/notes", json, r#"{"text":"milk"}"#);
    assert_eq!(created.status, 201);
    let id = serde_json::from_str::<Value>(&created.body).unwrap()["id"].clone();
    let path = format!("/notes/{id}");
    assert_eq!(
        notes.send("PUT", &path, json, r#"{"text":"oats"}"#).status,
        204
    );
    let read: Value = serde_json::from_str(&notes.get(&path).body).unwrap();
    assert_eq!(read, json!({ "id": id, "text": "oats" }));
    assert_eq!(notes.send("DELETE", &path, "", "").status, 204);
    assert_eq!(notes.get(&path).status, 404);
}

fn joined(chat: &Example, name: &str) -> WebSocket<std::net::TcpStream> {
    let url = format!("ws://{}/chat/{name}", chat.address);
    let (socket, _) = tungstenite::client(url, chat.connect()).unwrap();
    socket
}

fn hears(socket: &mut WebSocket<std::net::TcpStream>) -> String {
    socket.read().unwrap().into_text().unwrap().to_string()
}

#[test]
fn chat_tells_everybody() {
    let chat = example!("chat").start();
    let mut ada = joined(&chat, "ada");
    assert_eq!(hears(&mut ada), "ada is here");
    let mut grace = joined(&chat, "grace");
    assert_eq!(hears(&mut grace), "grace is here");
    assert_eq!(hears(&mut ada), "grace is here");
    grace.send(Message::text("hello")).unwrap();
    assert_eq!(hears(&mut ada), "grace: hello");
    assert_eq!(hears(&mut grace), "grace: hello");
    grace.close(None).unwrap();
    assert_eq!(hears(&mut ada), "grace has left");
}

#[test]
fn ticker_ticks_and_says_when_it_ends() {
    let mut ticker = example!("sse_ticker").start();
    let mut events = ticker.open("/ticks?millis=10");
    events.read_until("data: tick 3\n");
    ticker.signal(Signal::INT);
    events.read_until("event: restart\n");
    assert!(ticker.ended().success());
}

#[test]
fn upload_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let upload = example!("upload").argument(folder.path()).start();
    let content = "0123456789".repeat(50_000);
    assert_eq!(upload.send("PUT", "/files/a.txt", "", &content).status, 201);
    let stored = std::fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert_eq!(stored, content);
    assert_eq!(upload.send("PUT", "/files/..%2Fb", "", "b").status, 400);
    let head = "content-length: 100000000\r\n";
    assert_eq!(upload.ask("PUT", "/files/big", head, "").status, 413);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn driver_is_asked_on_its_stage() {
    let driver = example!("blocking_driver").start();
    assert_eq!(driver.get("/measure/7").body, "27 degrees\n");
    assert_eq!(driver.get("/measure/10").status, 404);
    assert_eq!(driver.get("/hello").status, 200);
}

#[test]
fn customers_are_known_by_their_keys() {
    let priorities = example!("priorities").start();
    let key = "x-api-key: correct-horse\r\n";
    let report = priorities.send("GET", "/report", key, "");
    assert!(report.body.starts_with("ada: "), "{report:?}");
    assert_eq!(priorities.get("/report").status, 401);
    assert_eq!(priorities.get("/health").body, "fine\n");
    assert_eq!(priorities.get("/export").body, "everything\n");
}

#[test]
fn perl_and_rust_serve_beside_each_other() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/psgi/hello.psgi");
    let mut site = example!("psgi_beside_rust").argument(file).start();
    assert_eq!(site.get("/rust").body, "Hello from Rust\n");
    assert_eq!(site.get("/perl/").body, "Hello world\n");
    assert_eq!(site.get("/perlite").status, 404);
    site.signal(Signal::TERM);
    assert!(site.ended().success());
}

#[test]
fn perl_knows_its_place_and_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.psgi");
    let app = "sub { [200, [], [join ' ', @{$_[0]}{qw(SCRIPT_NAME PATH_INFO REMOTE_ADDR)}]] }";
    std::fs::write(&file, app).unwrap();
    let site = example!("psgi_beside_rust").argument(&file).start();
    // On the stage at first, and then on the loop.
    for _ in 0..200 {
        assert_eq!(site.get("/perl/a%20b").body, "/perl /a b 127.0.0.1");
    }
}

#[test]
fn plain_axum_shows_its_stages() {
    let plain = example!("plain_axum").start();
    assert_eq!(plain.get("/slow").body, "done\n");
    assert_eq!(plain.get("/hello").body, "Hello, world!\n");
    let status: Value = serde_json::from_str(&plain.get("/status").body).unwrap();
    let routes = status["routes"].as_array().unwrap();
    assert!(
        routes.iter().any(|route| route["path"] == "/slow"),
        "{status}"
    );
}

#[test]
fn drain_finishes_what_is_under_way() {
    let mut server = example!("graceful_drain").start();
    let mut work = server.open("/work");
    let mut poll = server.open("/poll");
    // The response is on the connection that asked last, so the others have been read.
    server.get("/nothing");
    server.signal(Signal::TERM);
    poll.read_until("204 No Content");
    work.read_until("all of it\n");
    assert!(server.ended().success());
}

#[test]
fn upgrade_exchanges_the_process_and_tells_websockets_to_come_back() {
    let mut server = example!("upgrade").start();
    let first = server.get("/").body;
    assert_eq!(first, format!("process {}\n", server.pid()));
    let url = format!("ws://{}/echo", server.address);
    let (mut socket, _) = tungstenite::client(&url, server.connect()).unwrap();
    socket.send(Message::text("hello")).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("hello"));
    server.signal(Signal::USR2);
    let code = |message| match message {
        Message::Close(Some(frame)) => u16::from(frame.code),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(socket.read().unwrap()), 1012);
    let _reply = socket.flush();
    assert!(server.ended().success());

    let second = server.get("/").body;
    assert_ne!(second, first);
    let number = second.trim().rsplit(' ').next().unwrap().parse().unwrap();
    let (mut socket, _) = tungstenite::client(url, server.connect()).unwrap();
    kill_process(Pid::from_raw(number).unwrap(), Signal::TERM).unwrap();
    assert_eq!(code(socket.read().unwrap()), 1001);
}

#[test]
fn door_locks_after_three_guesses() {
    let door = example!("actor_test_kit").start();
    assert_eq!(door.send("POST", "/log-in/sesame", "", "").status, 200);
    for status in [403, 403, 403, 429] {
        assert_eq!(door.send("POST", "/log-in/wrong", "", "").status, status);
    }
}
