//! Addresses of the same text: each next version serves at each what was served there before.

use std::fs;
use std::time::Duration;

use crate::authority::Authority;
use crate::outside::tools;
use crate::program::address;
use crate::versions::Versions;

const CURL_DEADLINE: Duration = Duration::from_mins(1);
const ANY_PORT: &str = "127.0.0.1:0";

/// Runs curl, to which this address is that of `server.test`.
fn curl(authority: &Authority, address: &str, scheme: &str) -> String {
    let mut curl = tools::bounded(tools::system("curl"), CURL_DEADLINE);
    curl.args(["--silent", "--show-error", "--include", "--cacert"])
        .arg(authority.path("root.pem"))
        .args(["--connect-to", &format!("server.test::{address}")])
        .arg(format!("{scheme}://server.test/hello"));
    tools::run(&mut curl).stdout
}

/// Returns the addresses of the version that serves, in the order in which it names them.
fn announced(versions: &Versions, count: usize) -> Vec<String> {
    let line = |_| versions.first.wait_for_log("listening");
    (0..count).map(line).map(|line| address(&line)).collect()
}

/// Asserts that the first two speak TLS, the third one does not, and the last one sends clients on.
fn assert_spoken(authority: &Authority, addresses: &[String]) {
    for (address, scheme) in addresses.iter().zip(["https", "https", "http"]) {
        let response = curl(authority, address, scheme);
        assert!(
            response.ends_with("Hello, world!\n"),
            "{address}: {response}"
        );
    }
    let sent_on = curl(authority, &addresses[3], "http");
    assert!(sent_on.contains("ocation: https://"), "{sent_on}");
}

#[test]
fn those_of_one_text_keep_their_ports_and_what_they_speak() {
    let authority = Authority::new();
    authority.issue("server", "server.test");
    let mut flags = authority.flags("server");
    for flag in ["--listen", "--listen-plain", "--listen-redirecting"] {
        flags.extend([flag.to_owned(), ANY_PORT.to_owned()]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut versions = Versions::serve(&flags);
    let mut addresses = vec![versions.first.address.clone()];
    addresses.extend(announced(&versions, 3));
    assert_spoken(&authority, &addresses);
    for _ in 0..2 {
        let before = versions.pid;
        versions.upgrade();
        assert_eq!(announced(&versions, 4), addresses);
        // Of two that serve the same port, either might respond.
        versions.gone(before);
        assert_spoken(&authority, &addresses);
    }
}

#[test]
fn one_that_speaks_something_else_now_keeps_its_port() {
    let authority = Authority::new();
    authority.issue("server", "server.test");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("greenroom.toml");
    let (certificate, key) = (authority.text("server.pem"), authority.text("server.key"));
    let write = |addresses: &str| {
        let text = format!(
            "[server]\n{addresses}\ncert = [\"{certificate}\"]\nkey = [\"{key}\"]\n\
             [[site]]\n[[site.route]]\npath = \"/\"\nrespond = \"here\"\n"
        );
        fs::write(&file, text).unwrap();
    };
    let secure = format!("listen = [\"{ANY_PORT}\", \"unix:a.sock\"]");
    let plain = format!("listen = \"unix:a.sock\"\nlisten_plain = \"{ANY_PORT}\"");
    write(&secure);
    let mut versions = Versions::start(directory, &["greenroom.toml"]);
    let address = versions.first.address.clone();
    announced(&versions, 1);
    for (addresses, scheme) in [(plain, "http"), (secure, "https")] {
        write(&addresses);
        let before = versions.pid;
        versions.upgrade();
        assert!(announced(&versions, 2).contains(&address));
        versions.gone(before);
        let response = curl(&authority, &address, scheme);
        assert!(response.ends_with("here"), "{response}");
    }
}
