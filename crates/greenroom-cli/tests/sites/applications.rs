//! PSGI applications and upstreams of sites.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

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
    let encoded = site.get("/stripped%2Fx").text();
    assert!(encoded.starts_with("GET script= path=/x "), "{encoded}");
    drop(upstream);
    assert_eq!(site.get("/api/x").status, 502);
    assert_eq!(site.get("/hello").text(), "hello");
}

/// Returns the address for operators, which is in the log.
fn admin(site: &Site) -> String {
    let line = site.server.wait_for_log("status at");
    let (_, address) = line.split_once("http://").expect("it says where");
    let address = address.split(['/', ' ', '"']).next();
    address.expect("an address").to_owned()
}

fn ask(admin: &str, path: &str) -> Vec<u8> {
    let mut asked = begin(admin, "GET", path, "Host: localhost\r\n");
    let mut bytes = Vec::new();
    asked.read_to_end(&mut bytes).expect("it ends");
    Response::parse(&bytes).body
}

fn status(site: &Site) -> serde_json::Value {
    let status = ask(&admin(site), "/greenroom/status");
    serde_json::from_slice(&status).expect("JSON")
}

/// Waits until the metrics of the only application have this value.
fn await_metric(admin: &str, name: &str, value: &str) {
    let prefix = format!("greenroom_psgi_{name}{{");
    let is_shown = || {
        let metrics = String::from_utf8(ask(admin, "/greenroom/metrics")).expect("text");
        let mut lines = metrics.lines().filter(|line| line.starts_with(&prefix));
        lines.any(|line| line.rsplit(' ').next() == Some(value))
    };
    let begin = Instant::now();
    while !is_shown() {
        assert!(begin.elapsed() < Duration::from_mins(1), "{name} {value}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_metrics_go_on_when_an_application_changes_and_end_with_it() {
    let with = |workers: u32| {
        format!(
            "[[site]]\n[[site.route]]\npath = \"/\"\n\
             psgi = {{ app = \"app.psgi\", workers = {workers} }}\n"
        )
    };
    let directory = Directory::new(&with(1));
    directory.write("app.psgi", TELLING);
    let site = Site::serve(directory, &["--status-listen", "127.0.0.1:0"]);
    let admin = admin(&site);
    let reload = |file: Option<String>, ready: &str| {
        if let Some(file) = file {
            site.directory.write("greenroom.toml", file);
        }
        site.server.signal(Signal::HUP);
        site.server.wait_for_log(ready);
    };
    reload(None, "is loaded anew");
    await_metric(&admin, "reloads_total", "1");
    reload(Some(with(2)), "started=1 kept=0 ended=1");
    await_metric(&admin, "workers_wanted", "2");
    reload(None, "is loaded anew");
    await_metric(&admin, "reloads_total", "2");
    let none = "[[site]]\n[[site.route]]\npath = \"/\"\nrespond = \"none\"\n";
    reload(Some(none.to_owned()), "started=0 kept=0 ended=1");
    await_metric(&admin, "workers_wanted", "0");
    await_metric(&admin, "reloads_total", "2");
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
