//! Upstreams that others have written: Node.js and Python.

use std::net::SocketAddr;
use std::process::Stdio;

use greenroom_proxy::Settings;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::authority::Authority;
use crate::rig::{Rig, body_of, send, status_of, to, within};

/// Starts a program that prints its port, and is killed with the value.
async fn start(program: &str, arguments: &[&str]) -> (Child, SocketAddr) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; make tools installs it"));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines
        .next_line()
        .await
        .unwrap()
        .expect("a line with the port");
    let port: u16 = line.trim().parse().expect("a port");
    (child, SocketAddr::from(([127, 0, 0, 1], port)))
}

#[tokio::test]
async fn node() {
    within(async {
        let script = "
            const server = require('http').createServer((request, response) => {
                if (request.url === '/hints') response.writeEarlyHints({ link: '</a>; rel=x' });
                const parts = [];
                request.on('data', part => parts.push(part));
                request.on('end', () => {
                    response.setHeader('X-Url', request.url);
                    response.write(request.method + ' ');
                    response.end(Buffer.concat(parts));
                });
            });
            server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
        let (_node, address) = start("node", &["-e", script]).await;
        let rig = Rig::before([address]);
        for _ in 0..20 {
            let response = rig.exchange(send("POST", "/a%20b?c", "body")).await;
            assert_eq!(status_of(&response), 200);
            assert!(response.contains("/a%20b?c"), "{response}");
            assert!(
                response.contains("POST ") && response.contains("body"),
                "{response}"
            );
        }
        let response = rig.get("/hints", "").await;
        assert!(response.starts_with("HTTP/1.1 103 "), "{response}");
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn node_with_tls() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        let script = "
            const { readFileSync: read } = require('fs');
            const [key, cert] = process.argv.slice(1).map(file => read(file));
            const server = require('https').createServer({ key, cert }, (request, response) => {
                response.setHeader('X-Name', request.socket.servername);
                request.pipe(response);
            });
            server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
        let (key, certificate) = (authority.text("own.key"), authority.text("own.pem"));
        let (_node, address) = start("node", &["-e", script, &key, &certificate]).await;
        let rig = Rig::with(Settings {
            to: vec![
                format!("https://localhost:{}", address.port())
                    .parse()
                    .unwrap(),
            ],
            tls_ca: Some(authority.path("root.pem")),
            ..to([])
        });
        for _ in 0..20 {
            let response = rig.exchange(send("POST", "/", "body")).await;
            assert_eq!(status_of(&response), 200);
            assert!(response.contains("x-name: localhost"), "{response}");
            assert!(response.contains("body"), "{response}");
        }
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn python() {
    within(async {
        let script = "
import http.server, os, sys
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()
";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a b.txt"), "from a file").unwrap();
        let script = format!("import os; os.chdir({:?}){script}", folder.path());
        let (_python, address) = start("python3", &["-c", &script]).await;
        let rig = Rig::before([address]);
        for _ in 0..5 {
            let response = rig.get("/a%20b.txt", "").await;
            assert_eq!(body_of(&response), "from a file");
        }
        assert_eq!(status_of(&rig.get("/none", "").await), 404);
        assert_eq!(status_of(&rig.exchange(send("POST", "/", "")).await), 501);
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}
