//! PSGI applications and upstreams of sites.

use std::io::Write;

use crate::site::{Directory, Site};

/// An application that tells what it was asked.
const TELLING: &str = r#"
my $began = $$;
sub {
    my $env = shift;
    my $text = join ' ', $env->{REQUEST_METHOD}, "script=$env->{SCRIPT_NAME}",
        "path=$env->{PATH_INFO}", "address=$env->{REMOTE_ADDR}", "host=$env->{HTTP_HOST}",
        "env=$ENV{PLACK_ENV}";
    if ($env->{CONTENT_LENGTH}) {
        $env->{'psgi.input'}->read(my $body, $env->{CONTENT_LENGTH});
        $text .= " body=$body";
    }
    [200, ['Content-Type' => 'text/plain'], ["$text\n"]];
}
"#;

#[test]
fn applications_have_their_paths_below_their_route() {
    let directory = Directory::new(
        r#"
[[site]]
[[site.route]]
path = "/"
psgi = { app = "app.psgi", workers = 1, env = "test" }
[[site.route]]
path = "/blog/"
psgi = { app = "app.psgi", workers = 1 }
"#,
    );
    directory.write("app.psgi", TELLING);
    let site = Site::serve(directory, &[]);
    let tells = "address=127.0.0.1 host=localhost";
    for (path, expected) in [
        (
            "/a%20b",
            format!("GET script= path=/a b {tells} env=test\n"),
        ),
        (
            "/blog/a",
            format!("GET script=/blog path=/a {tells} env=deployment\n"),
        ),
        (
            "/bl%6fg/a",
            format!("GET script=/blog path=/a {tells} env=deployment\n"),
        ),
        (
            "/blogs",
            format!("GET script= path=/blogs {tells} env=test\n"),
        ),
    ] {
        let response = site.get(path);
        assert_eq!(
            (response.status, response.text()),
            (200, expected),
            "{path}"
        );
    }
    let mut posting = site.begin("POST", "/", "Host: localhost\r\nContent-Length: 5\r\n");
    posting.write_all(b"hello").expect("it is read");
    let response = crate::program::read_to_end(posting);
    assert!(
        response.contains("POST script= path=/") && response.contains("body=hello"),
        "{response}"
    );
}

#[test]
fn upstreams_get_the_path_as_it_was_sent() {
    let upstream = Directory::new("[[site]]\nroute = { path = \"/\", psgi = \"app.psgi\" }");
    upstream.write("app.psgi", TELLING);
    let upstream = Site::serve(upstream, &[]);
    let to = format!("http://{}", upstream.server.address);
    let site = Site::serve(
        Directory::new(&format!(
            r#"
[[site]]
[[site.route]]
path = "/api"
proxy = "{to}"
compress = true
[[site.route]]
path = "/stripped/"
proxy = {{ to = ["{to}"], strip_prefix = "/stripped" }}
[[site.route]]
path = "/hello"
respond = "hello"
"#
        )),
        &[],
    );
    let found = site.get("/api/a%2Fb");
    assert_eq!(found.status, 200, "{found:?}");
    assert!(
        found.text().starts_with("GET script= path=/api/a/b "),
        "{}",
        found.text()
    );
    assert!(found.text().contains("host=localhost"), "{}", found.text());
    let stripped = site.get("/stripped/x").text();
    assert!(stripped.starts_with("GET script= path=/x "), "{stripped}");
    drop(upstream);
    assert_eq!(site.get("/api/x").status, 502);
    assert_eq!(site.get("/hello").text(), "hello");
}
