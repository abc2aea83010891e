//! Parts around a route: compression, passwords, limits.

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::site::{Directory, Response, Site};

const SITES: &str = r#"
[[site]]
compress = true
basic_auth = { file = "passwords", realm = "members" }

[[site.route]]
path = "/"
files = "public"
basic_auth = false

[[site.route]]
path = "/plain/"
files = "public"
compress = false
basic_auth = false

[[site.route]]
path = "/members/"
respond = "welcome"

[[site.route]]
path = "/small"
respond = { body = "uploaded" }
body_bytes_max = "1KiB"
basic_auth = false
"#;

fn site() -> Site {
    let directory = Directory::new(SITES);
    directory.write("passwords", passwords());
    directory.write("public/page.html", "word ".repeat(10_000));
    directory.write("public/short.html", "word");
    directory.write("public/picture.png", "word ".repeat(10_000));
    Site::serve(directory, &[])
}

/// Returns lines of a file of passwords: of alice by bcrypt, of bob by argon2, both `secret`.
fn passwords() -> String {
    use argon2::password_hash::PasswordHasher;
    let bcrypt = bcrypt::hash("secret", 4).expect("a hash");
    let argon2 = argon2::Argon2::default().hash_password_with_salt(b"secret", b"salt salt");
    let argon2 = argon2.expect("a hash");
    format!("alice:{bcrypt}\n# a comment\n\nbob:{argon2}\n")
}

fn ask(site: &Site, path: &str, lines: &str) -> Response {
    site.ask("GET", path, &format!("Host: localhost\r\n{lines}"))
}

/// Decompresses by the program for it.
fn decompressed(program: &str, bytes: &[u8]) -> String {
    let mut child = Command::new(program)
        .args(["-d", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect(program);
    child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(bytes)
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn responses_are_compressed_by_type_and_size() {
    let site = site();
    let accepted = "Accept-Encoding: gzip\r\n";
    let page = ask(&site, "/page.html", accepted);
    assert_eq!(page.field("content-encoding"), Some("gzip"));
    assert!(
        page.field("vary")
            .is_some_and(|vary| vary.contains("accept-encoding"))
    );
    assert!(
        page.field("etag")
            .is_some_and(|tag| tag.starts_with("W/\"")),
        "{page:?}"
    );
    assert!(page.body.len() < 5_000, "{}", page.body.len());
    assert_eq!(decompressed("gzip", &page.body), "word ".repeat(10_000));
    let head = site.ask(
        "HEAD",
        "/page.html",
        &format!("Host: localhost\r\n{accepted}"),
    );
    for name in ["content-encoding", "content-length", "etag", "vary"] {
        assert_eq!(head.field(name), page.field(name), "{name}");
    }
    for encoding in ["br", "zstd"] {
        let page = ask(
            &site,
            "/page.html",
            &format!("Accept-Encoding: {encoding}\r\n"),
        );
        assert_eq!(page.field("content-encoding"), Some(encoding));
        assert!(page.body.len() < 5_000, "{encoding}: {}", page.body.len());
    }
    // Who takes none of them gets it as it is, and whoever made it says the status.
    for (path, status) in [("/page.html", 200), ("/none", 404)] {
        let response = ask(&site, path, "Accept-Encoding: deflate, *;q=0\r\n");
        assert_eq!(
            (response.status, response.field("content-encoding")),
            (status, None)
        );
    }
    for path in ["/short.html", "/picture.png", "/plain/page.html"] {
        let response = ask(&site, path, accepted);
        assert_eq!(response.field("content-encoding"), None, "{path}");
        assert!(
            response
                .field("etag")
                .is_some_and(|tag| tag.starts_with('"'))
        );
    }
    let part = ask(
        &site,
        "/page.html",
        &format!("{accepted}Range: bytes=0-3\r\n"),
    );
    assert_eq!((part.status, part.text()), (206, "word".to_owned()));
}

#[test]
fn a_response_that_was_compressed_is_confirmed_by_its_own_tag() {
    let site = site();
    let accepted = "Accept-Encoding: gzip\r\n";
    let page = ask(&site, "/page.html", accepted);
    let tag = page.field("etag").expect("a tag");
    let same = ask(
        &site,
        "/page.html",
        &format!("{accepted}If-None-Match: {tag}\r\n"),
    );
    assert_eq!(same.status, 304);
    for name in ["etag", "vary"] {
        assert_eq!(same.field(name), page.field(name), "{name}");
    }
    let strong = tag.strip_prefix("W/").expect("it is weak");
    let same = ask(
        &site,
        "/page.html",
        &format!("If-None-Match: \"other\", {strong}\r\n"),
    );
    assert_eq!((same.status, same.field("etag")), (304, Some(strong)));
}

#[test]
fn members_need_their_password() {
    let site = site();
    let with = |credentials: &str| {
        let encoded = STANDARD.encode(credentials);
        ask(
            &site,
            "/members/",
            &format!("Authorization: Basic {encoded}\r\n"),
        )
    };
    // Twice, as the right ones are remembered.
    for name in ["alice", "bob", "alice", "bob"] {
        let response = with(&format!("{name}:secret"));
        assert_eq!(
            (response.status, response.text()),
            (200, "welcome".to_owned()),
            "{name}"
        );
    }
    for credentials in [
        "alice:",
        "alice:Secret",
        "bob:secret2",
        "carol:secret",
        ":",
        "alice",
    ] {
        let response = with(credentials);
        assert_eq!(response.status, 401, "{credentials}");
        let challenge = response.field("www-authenticate");
        assert_eq!(
            challenge,
            Some("Basic realm=\"members\", charset=\"UTF-8\"")
        );
    }
    assert_eq!(ask(&site, "/members/", "").status, 401);
    let other = ask(
        &site,
        "/members/",
        "Authorization: Bearer YWxpY2U6c2VjcmV0\r\n",
    );
    assert_eq!(other.status, 401);
    assert_eq!(ask(&site, "/%6dembers/", "").status, 401);
    assert_eq!(ask(&site, "/short.html", "").status, 200);
}

#[test]
fn a_body_that_is_too_long_is_rejected() {
    let site = site();
    let lines = "Host: localhost\r\nContent-Length: 1025\r\n";
    assert_eq!(site.ask("POST", "/small", lines).status, 413);
    assert_eq!(site.get("/small").text(), "uploaded");
}
