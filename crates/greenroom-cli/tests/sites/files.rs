//! Files of a directory.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use crate::site::{Directory, Response, Site};

const SITES: &str = r#"
[[site]]
[[site.route]]
path = "/"
files = { root = "public", not_found = "missing.html", cache_control = "max-age=60" }

[[site.route]]
path = "/static/"
files = { root = "public", index = false, well_known = true }
"#;

fn site() -> Site {
    let directory = Directory::new(SITES);
    directory.write("missing.html", "<p>gone</p>");
    directory.write("secret", "secret");
    directory.write("outside/file", "outside");
    directory.write("public/index.html", "index");
    directory.write("public/a b.txt", "0123456789");
    directory.write("public/empty.txt", "");
    directory.write("public/below/index.html", "below");
    directory.write("public/.hidden", "hidden");
    directory.write("public/.git/config", "hidden");
    directory.write("public/.well-known/acme", "known");
    directory.write("public/page.html", "plain");
    directory.write("public/page.html.br", "brotli");
    directory.write("public/page.html.gz", "gzip");
    for (target, link) in [
        (directory.path("secret"), "public/absolute"),
        ("../secret".into(), "public/relative"),
        ("../outside".into(), "public/outside"),
        ("page.html".into(), "public/within"),
    ] {
        symlink(target, directory.path(link)).expect("a link");
    }
    let fifo = Command::new("mkfifo")
        .arg(directory.path("public/fifo"))
        .status();
    assert!(fifo.expect("mkfifo is there").success());
    // It stays when it is bound no more.
    UnixListener::bind(directory.path("public/socket")).expect("it is free");
    Site::serve(directory, &[])
}

fn ask(site: &Site, path: &str, lines: &str) -> Response {
    site.ask("GET", path, &format!("Host: localhost\r\n{lines}"))
}

#[test]
fn files_and_indexes_are_served_with_their_type() {
    let site = site();
    for (path, text) in [
        ("/", "index"),
        ("/a%20b.txt", "0123456789"),
        ("/below/", "below"),
        ("//below//", "below"),
        ("/static/a%20b.txt", "0123456789"),
        ("/static/.well-known/acme", "known"),
        ("/within", "plain"),
    ] {
        let response = site.get(path);
        assert_eq!(
            (response.status, response.text()),
            (200, text.to_owned()),
            "{path}"
        );
    }
    assert_eq!(site.get("/").field("content-type"), Some("text/html"));
    assert_eq!(site.get("/").field("cache-control"), Some("max-age=60"));
    let below = site.get("/static/below?a=b");
    assert_eq!(below.status, 404, "there is no index: {below:?}");
    let below = site.get("/below?a=b");
    assert_eq!(
        (below.status, below.field("location")),
        (307, Some("/below/?a=b"))
    );
    let bare = site.get("/static");
    assert_eq!(
        (bare.status, bare.field("location")),
        (308, Some("/static/"))
    );
}

#[test]
fn nothing_outside_and_nothing_hidden_is_served() {
    let site = site();
    for path in [
        "/nowhere",
        "/.hidden",
        "/.git/config",
        "/%2ehidden",
        "/.well-known/acme",
        "/below/.well-known/acme",
        "/absolute",
        "/relative",
        "/outside/file",
        "/outside/",
        "/static/",
        "/page.html/",
        "/page.html/x",
        "/fifo",
        "/socket",
        r"/below\..\page.html",
        "/below%5c..%5cpage.html",
    ] {
        let response = site.get(path);
        assert_eq!(response.status, 404, "{path}: {response:?}");
        assert!(!response.text().contains("secret"), "{path}");
    }
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/below/%2e%2e%2f..%2fsecret",
        "/a%00b",
    ] {
        assert_eq!(site.get(path).status, 400, "{path}");
    }
    let missing = site.get("/nowhere");
    assert_eq!(missing.text(), "<p>gone</p>");
    assert_eq!(missing.field("content-type"), Some("text/html"));
    assert_eq!(site.get("/static/nowhere").text(), "not found\n");
}

#[test]
fn only_get_and_head_are_allowed() {
    let site = site();
    let head = site.ask("HEAD", "/a%20b.txt", "Host: localhost\r\n");
    assert_eq!(
        (head.status, head.field("content-length")),
        (200, Some("10"))
    );
    assert!(head.body.is_empty());
    for method in ["POST", "PUT", "DELETE"] {
        let response = site.ask(method, "/", "Host: localhost\r\nContent-Length: 0\r\n");
        assert_eq!(
            (response.status, response.field("allow")),
            (405, Some("GET,HEAD"))
        );
    }
}

#[test]
fn ranges_and_conditions_are_kept() {
    let site = site();
    let path = "/a%20b.txt";
    let whole = site.get(path);
    let tag = whole.field("etag").expect("a tag").to_owned();
    let date = whole.field("last-modified").expect("a date").to_owned();
    let range = "Range: bytes=2-4\r\n";
    let part = ask(&site, path, range);
    assert_eq!((part.status, part.text()), (206, "234".to_owned()));
    assert_eq!(part.field("content-range"), Some("bytes 2-4/10"));
    assert_eq!(ask(&site, path, "Range: bytes=-3\r\n").text(), "789");
    let head = site.ask("HEAD", path, &format!("Host: localhost\r\n{range}"));
    assert_eq!(
        (head.status, head.field("content-length")),
        (200, Some("10"))
    );
    let beyond = ask(&site, path, "Range: bytes=10-\r\n");
    assert_eq!(
        (beyond.status, beyond.field("content-range")),
        (416, Some("bytes */10"))
    );
    assert_eq!(ask(&site, path, "Range: bytes=0-1,3-4\r\n").status, 200);
    // More than there is of the end is all; another unit does not count (RFC 9110, section 14).
    for of_all in ["bytes=-65536", "Bytes=-11", "items=0-5", "bytes"] {
        let all = ask(&site, path, &format!("Range: {of_all}\r\n"));
        assert_eq!((all.status, all.text()), (200, "0123456789".to_owned()));
    }
    assert_eq!(ask(&site, path, "Range: BYTES=2-4\r\n").text(), "234");
    assert_eq!(ask(&site, path, "Range: bytes=-0\r\n").status, 416);
    let empty = ask(&site, "/empty.txt", "Range: bytes=0-\r\n");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    for (condition, status) in [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: W/{tag}\r\n"), 304),
        (format!("If-Modified-Since: {date}\r\n"), 304),
        ("If-None-Match: \"other\"\r\n".to_owned(), 200),
        ("If-Match: \"other\"\r\n".to_owned(), 412),
        (format!("{range}If-Range: {tag}\r\n"), 206),
        (format!("{range}If-Range: {date}\r\n"), 206),
        (format!("{range}If-Range: \"other\"\r\n"), 200),
        (
            "Range: bytes=10-\r\nIf-Range: \"other\"\r\n".to_owned(),
            200,
        ),
    ] {
        let response = ask(&site, path, &condition);
        assert_eq!(response.status, status, "{condition}");
        if status == 304 {
            assert_eq!(response.field("vary"), Some("accept-encoding"));
        }
        assert_eq!(
            response.body.is_empty(),
            [304, 412].contains(&status),
            "{condition}"
        );
    }
}

#[test]
fn a_compressed_file_stands_for_the_file_if_the_client_takes_it() {
    let site = site();
    for (accepted, text, encoding) in [
        ("br, gzip", "brotli", Some("br")),
        ("gzip", "gzip", Some("gzip")),
        ("zstd", "plain", None),
        ("identity", "plain", None),
    ] {
        let response = ask(
            &site,
            "/page.html",
            &format!("Accept-Encoding: {accepted}\r\n"),
        );
        assert_eq!(response.text(), text, "{accepted}");
        assert_eq!(response.field("content-encoding"), encoding);
        assert_eq!(response.field("content-type"), Some("text/html"));
        assert_eq!(response.field("vary"), Some("accept-encoding"));
    }
}

#[test]
fn a_large_file_takes_no_memory_of_its_size() {
    const BYTES: u64 = 300 << 20;
    let site = site();
    let large = fs::File::create(site.directory.path("public/large")).expect("a file");
    large.set_len(BYTES).expect("it has holes");
    let mut connection = site.begin("GET", "/large", "Host: localhost\r\n");
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        match connection.read(&mut buffer).expect("the file comes") {
            0 => break,
            count => bytes += count as u64,
        }
    }
    assert!(bytes > BYTES, "{bytes}");
    let status = fs::read_to_string(format!("/proc/{}/status", site.server.pid()));
    let status = status.expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .expect("its peak");
    let peak: u64 = peak.parse().expect("kilobytes");
    assert!(peak < 150 << 10, "{peak} kB");
}

#[test]
fn an_application_of_the_browser_gets_its_page_at_paths_without_a_file() {
    let directory = Directory::new(
        "[[site]]\n[[site.route]]\npath = \"/app/\"\n\
         files = { root = \"app\", fallback = \"index page.html\", not_found = \"missing.html\" }\n",
    );
    directory.write("app/index page.html", "the application");
    directory.write("app/script.js", "script");
    directory.write("missing.html", "missing");
    let site = Site::serve(directory, &[]);
    for path in ["/app/", "/app/users/7", "/app/users/7?a=b.c", "/app/a.b/c"] {
        let page = site.get(path);
        assert_eq!(
            (page.status, &*page.text()),
            (200, "the application"),
            "{path}"
        );
        assert_eq!(page.field("content-type"), Some("text/html"), "{path}");
    }
    assert_eq!(site.get("/app/script.js").text(), "script");
    for path in ["/app/gone.js", "/app/.hidden", "/app/users/.."] {
        let missing = site.get(path);
        assert!([404, 400].contains(&missing.status), "{path}: {missing:?}");
    }
    assert_eq!(site.get("/app/gone.js").text(), "missing");
    let posted = site.ask(
        "POST",
        "/app/users/7",
        "Host: localhost\r\nContent-Length: 0\r\n",
    );
    assert_eq!(posted.status, 405);
    // A new version is there at once, and browsers learn of it by its tag.
    let tag = site.get("/app/users/7");
    let tag = tag.field("etag").expect("a tag");
    let lines = format!("Host: localhost\r\nIf-None-Match: {tag}\r\n");
    assert_eq!(site.ask("GET", "/app/users/8", &lines).status, 304);
    site.directory
        .write("app/index page.html", "the new application");
    assert_eq!(
        site.ask("GET", "/app/users/8", &lines).text(),
        "the new application"
    );
}

#[test]
fn what_may_not_be_read_is_not_there_for_get_and_head() {
    let directory = Directory::new(SITES);
    directory.write("missing.html", "<p>gone</p>");
    directory.write("public/secret.txt", "secret");
    directory.write("public/page.html", "plain");
    directory.write("public/page.html.br", "brotli");
    for (name, mode) in [
        ("", 0o755),
        ("public/secret.txt", 0o000),
        ("public/page.html.br", 0o000),
    ] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(directory.path(name), mode).expect("it is there");
    }
    // Root may read everything.
    let as_nobody: &[&str] = if rustix::process::geteuid().is_root() {
        &["--user=nobody", "--group=65534"]
    } else {
        &[]
    };
    let site = Site::serve(directory, as_nobody);
    for method in ["GET", "HEAD"] {
        let secret = site.ask(method, "/secret.txt", "Host: localhost\r\n");
        assert_eq!(secret.status, 404, "{method}");
        let lines = "Host: localhost\r\nAccept-Encoding: br\r\n";
        let page = site.ask(method, "/page.html", lines);
        let seen = (page.status, page.field("content-encoding"));
        assert_eq!(seen, (200, None), "{method}");
    }
}
