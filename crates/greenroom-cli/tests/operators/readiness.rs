//! `/health` and `/ready`, from before the application is loaded until the drain is over.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::outside::http;
use crate::outside::wait;
use crate::{Operated, PATIENCE};

fn ready(admin: SocketAddr) -> Option<(u16, String)> {
    let response = http::get(admin, "/ready", Duration::from_secs(5)).ok()?;
    Some((response.status, response.body))
}

/// Waits for this status of `/ready`, and this text.
pub(crate) fn await_ready(admin: SocketAddr, status: u16, text: &str) {
    let is_so = |seen: &Option<(u16, String)>| {
        seen.as_ref()
            .is_some_and(|(seen, said)| *seen == status && said.contains(text))
    };
    wait::until(text, PATIENCE, || ready(admin), is_so);
}

fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

#[test]
fn it_is_not_ready_before_the_application_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let (go, app) = (
        directory.path().join("go"),
        directory.path().join("app.psgi"),
    );
    let source = format!(
        "use strict; use warnings;\nselect undef, undef, undef, 0.01 until -e '{}';\n\
         sub {{ [200, [], ['hello']] }};",
        go.display()
    );
    fs::write(&app, source).unwrap();
    let admin = free_address();
    let mut server = Command::new(env!("CARGO_BIN_EXE_greenroom"))
        .args(["serve", "-p", "0", "--workers", "1", "--status-listen"])
        .arg(admin.to_string())
        .arg(&app)
        .spawn()
        .unwrap();
    await_ready(admin, 503, "not ready: starting");
    let health = http::get(admin, "/health", PATIENCE).unwrap();
    assert_eq!((health.status, &*health.body), (200, "alive\n"));
    let page = http::get(admin, "/", PATIENCE).unwrap();
    assert!(page.body.contains("Not ready: starting"), "{}", page.body);
    fs::write(&go, "").unwrap();
    await_ready(admin, 200, "ready\n");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn it_is_not_ready_while_it_drains_and_still_says_so() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", upstream.local_addr().unwrap());
    let operated = Operated::start(&["--upstream", &url]);
    await_ready(operated.admin(), 200, "ready\n");
    // A request that is under way until the upstream responds.
    let mut client = TcpStream::connect(operated.server.address()).unwrap();
    let request = http::request(operated.server.address(), "/proxy", "close");
    client.write_all(request.as_bytes()).unwrap();
    let (mut asked, _) = upstream.accept().unwrap();
    assert!(asked.read(&mut [0; 1024]).unwrap() > 0);
    operated.server.signal(Signal::TERM);
    await_ready(operated.admin(), 503, "not ready: draining");
    assert_eq!(operated.ask("/health").status, 200);
    let page = operated.ask("/");
    assert!(
        page.body.contains("class=\"state draining\""),
        "{}",
        page.body
    );
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    asked.write_all(response.as_bytes()).unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}
