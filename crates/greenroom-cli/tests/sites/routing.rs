//! Hosts, paths, redirects, fixed responses and header fields.

use crate::site::{Directory, Site};

const SITES: &str = r#"
[[site]]
hosts = ["example.org", "www.example.org"]
headers = { set = { "X-Site" = "one" }, remove = ["X-Gone"] }

[[site.route]]
path = "/"
respond = "root"
headers = { add = { "X-Site" = "route" } }

[[site.route]]
path = "/health"
exact = true
respond = { body = "fine", content_type = "text/x-fine", status = 203 }

[[site.route]]
path = "/old"
redirect = "/new"

[[site.route]]
path = "/moved/"
redirect = { to = "https://example.com", status = 301, keep_rest = true }

[[site.route]]
path = "/pixel.gif"
respond = { file = "pixel.gif" }

[[site]]
hosts = ["*.example.org"]
[[site.route]]
path = "/only/"
respond = "wildcard"
"#;

fn site() -> Site {
    let directory = Directory::new(SITES);
    directory.write("pixel.gif", b"GIF89a");
    Site::serve(directory, &[])
}

fn of(site: &Site, host: &str, path: &str) -> (u16, String) {
    let response = site.ask("GET", path, &format!("Host: {host}\r\n"));
    (response.status, response.text())
}

#[test]
fn hosts_are_exact_or_wildcards_and_others_are_misdirected() {
    let site = site();
    for (host, path, status, text) in [
        ("example.org", "/", 200, "root"),
        ("EXAMPLE.org.:8080", "/x", 200, "root"),
        ("a.example.org", "/only/x", 200, "wildcard"),
        ("a.example.org", "/other", 404, "not found\n"),
        (
            "a.b.example.org",
            "/only/",
            421,
            "there is no site of this host here\n",
        ),
        (
            "127.0.0.1",
            "/",
            421,
            "there is no site of this host here\n",
        ),
    ] {
        assert_eq!(
            of(&site, host, path),
            (status, text.to_owned()),
            "{host}{path}"
        );
    }
}

#[test]
fn paths_are_compared_decoded_and_segment_by_segment() {
    let site = site();
    for (path, status, text) in [
        ("/health", 203, "fine"),
        ("/health/x", 200, "root"),
        ("/healthy", 200, "root"),
        ("//health", 203, "fine"),
        ("/%68ealth", 203, "fine"),
        ("/a/../health", 400, "the path of the request is no path\n"),
        (
            "/a/%2e%2e/health",
            400,
            "the path of the request is no path\n",
        ),
        ("/%00", 400, "the path of the request is no path\n"),
        ("/%zz", 400, "the path of the request is no path\n"),
    ] {
        let found = of(&site, "example.org", path);
        assert_eq!(found, (status, text.to_owned()), "{path}");
    }
}

#[test]
fn redirects_keep_the_rest_if_they_are_asked_to() {
    let site = site();
    for (path, status, location) in [
        ("/old", 308, "/new"),
        ("/old/a?b=c", 308, "/new"),
        ("/moved/a/b?c=d", 301, "https://example.com/a/b?c=d"),
        ("/moved?c=d", 308, "/moved/?c=d"),
        (
            "/moved//evil.example/",
            301,
            "https://example.com/evil.example/",
        ),
    ] {
        let response = site.ask("GET", path, "Host: example.org\r\n");
        let found = (response.status, response.field("location"));
        assert_eq!(found, (status, Some(location)), "{path}");
    }
}

#[test]
fn fixed_responses_and_header_fields_are_as_the_file_says() {
    let site = site();
    let health = site.ask("GET", "/health", "Host: example.org\r\n");
    assert_eq!(health.field("content-type"), Some("text/x-fine"));
    assert_eq!(health.field("x-site"), Some("one"));
    let pixel = site.ask("HEAD", "/pixel.gif", "Host: example.org\r\n");
    assert_eq!(pixel.field("content-type"), Some("image/gif"));
    assert_eq!(pixel.field("content-length"), Some("6"));
    assert!(pixel.body.is_empty());
    let root = site.ask("GET", "/", "Host: example.org\r\n");
    assert_eq!(root.field("x-site"), Some("one"));
    assert_eq!(root.all("x-site"), ["one", "route"]);
}
