//! PSGI applications and upstreams of sites.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use crate::site::{Directory, Response, Site, begin};

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

/// Asks for the status, by the address in the log.
fn status(site: &Site) -> serde_json::Value {
    let line = site.server.wait_for_log("status at");
    let (_, address) = line.split_once("http://").expect("it says where");
    let address = address.split(['/', ' ', '"']).next().expect("an address");
    let mut asked = begin(address, "GET", "/greenroom/status", "Host: localhost\r\n");
    let mut bytes = Vec::new();
    asked.read_to_end(&mut bytes).expect("it ends");
    serde_json::from_slice(&Response::parse(&bytes).body).expect("JSON")
}

#[test]
fn the_status_names_applications_by_their_route_and_shows_upstreams() {
    let directory = Directory::new(
        "[[site]]\nhosts = [\"example.org\"]\n[[site.route]]\npath = \"/blog/\"\n\
         psgi = { app = \"app.psgi\", workers = 1 }\n[[site.route]]\npath = \"/api/\"\n\
         proxy = { to = \"unix:up.sock\", failures_max = 1 }\n",
    );
    directory.write("app.psgi", TELLING);
    let site = Site::serve(directory, &["--status-listen", "127.0.0.1:0"]);
    let lines = "Host: example.org\r\n";
    assert_eq!(site.ask("GET", "/api/x", lines).status, 502);
    let status = status(&site);
    assert_eq!(status["psgi"][0]["label"], "example.org/blog/");
    assert_eq!(status["psgi"][0]["mount"], "/blog");
    let upstream = &status["proxies"][0]["upstreams"][0];
    let path = site.directory.path("up.sock").display().to_string();
    assert_eq!(upstream["address"], format!("unix:{path}"));
    assert_eq!(upstream["state"], "resting");
    assert_eq!(upstream["in_flight"], 0);
    assert_eq!(upstream["failures"]["connect"], 1);
}

#[test]
fn a_socket_of_an_upstream_is_beside_the_file() {
    let directory =
        Directory::new("[[site]]\n[[site.route]]\npath = \"/\"\nproxy = \"unix:up.sock\"\n");
    let listener = UnixListener::bind(directory.path("up.sock")).expect("it is free");
    let responding = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it is asked");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            head.extend(byte);
        }
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere";
        stream.write_all(response).expect("it is read");
    });
    let site = Site::serve(directory, &[]);
    assert_eq!(site.get("/").text(), "here");
    responding.join().expect("it was asked");
}
