//! Traces: what a collector gets of requests, and what its absence costs.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::authority::Authority;
use crate::outside::{tools, wait::until};
use crate::ports::free_port;
use crate::program::{Running, command, output, read_to_end};
use crate::site::{Directory, Response, Site, begin};

/// The time-out of a condition; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// The OpenTelemetry Collector while it runs. It is killed when this is dropped.
pub(crate) struct Collector {
    process: Child,
    port: u16,
    scheme: &'static str,
    directory: TempDir,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::start_with("http", "")
    }

    /// Starts one that speaks TLS, and wants a certificate of clients.
    fn start_tls(authority: &Authority) -> Self {
        authority.issue("collector", "127.0.0.1");
        let file = |name| authority.text(name);
        Self::start_with(
            "https",
            &format!(
                ", tls: {{cert_file: '{}', key_file: '{}', client_ca_file: '{}'}}",
                file("collector.pem"),
                file("collector.key"),
                file("root.pem"),
            ),
        )
    }

    fn start_with(scheme: &'static str, settings: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = directory.path().join("spans.json");
        let config = directory.path().join("collector.yaml");
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'{settings}}}}}}}}}\n\
             exporters: {{file: {{path: '{}', flush_interval: 50ms}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}\n",
            file.display()
        );
        fs::write(&config, text).unwrap();
        let process = Command::new(tools::installed("otelcol/otelcol"))
            .arg(format!("--config=file:{}", config.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let collector = Self {
            process,
            port,
            scheme,
            directory,
        };
        let connect = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        until("the collector listens", PATIENCE, connect, |is_there| {
            *is_there
        });
        collector
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("spans.json")
    }

    /// Returns the resources with their spans that have arrived.
    fn resources(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let resources = lines.flat_map(|line| line["resourceSpans"].as_array().unwrap().clone());
        resources.collect()
    }

    fn spans(&self) -> Vec<Value> {
        let of = |parent: &Value, name: &str| parent[name].as_array().cloned().unwrap_or_default();
        let resources = self.resources();
        let scopes = resources.iter().flat_map(|it| of(it, "scopeSpans"));
        scopes.flat_map(|scope| of(&scope, "spans")).collect()
    }

    /// Waits for so many spans.
    #[track_caller]
    pub(crate) fn await_spans(&self, count: usize) -> Vec<Value> {
        let spans = until(
            "spans arrive",
            PATIENCE,
            || self.spans(),
            |it| it.len() >= count,
        );
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // It may have ended.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}

/// Returns an attribute as text.
fn attribute(of: &Value, name: &str) -> Option<String> {
    let attributes = of["attributes"].as_array()?;
    let found = attributes
        .iter()
        .find(|attribute| attribute["key"] == name)?;
    let (_, value) = found["value"].as_object()?.iter().next()?;
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    )
}

/// Returns the seconds of an event, and asserts that it lies within its span.
#[track_caller]
fn seconds(span: &Value, event: &str) -> f64 {
    let events = span["events"].as_array().unwrap();
    let found = events.iter().find(|it| it["name"] == event);
    let found = found.unwrap_or_else(|| panic!("{event}: {span:#}"));
    let nanos = |of: &Value, name: &str| of[name].as_str().unwrap().parse::<u64>().unwrap();
    let during = nanos(span, "startTimeUnixNano")..=nanos(span, "endTimeUnixNano");
    assert!(
        during.contains(&nanos(found, "timeUnixNano")),
        "{event}: {span:#}"
    );
    attribute(found, "greenroom.seconds")
        .unwrap()
        .parse()
        .unwrap()
}

fn ask(server: &Running, path: &str, lines: &str) -> Response {
    let lines = format!("Host: localhost\r\n{lines}");
    let response = read_to_end(begin(&server.address, "GET", path, &lines));
    Response::parse(response.as_bytes())
}

fn traceparent(flags: &str) -> String {
    format!("Traceparent: 00-{TRACE}-{PARENT}-{flags}\r\nTracestate: rojo=1\r\n")
}

/// Drains the server, which sends the spans that wait.
fn end(mut server: Running) {
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

#[test]
fn a_collector_gets_the_span_of_a_staged_request() {
    let collector = Collector::start();
    let url = collector.url();
    let server = Running::serve(&[
        "--otlp-endpoint",
        &url,
        "--otlp-service-name",
        "shop",
        "--request-id",
        "--otlp-parents",
        "all",
        // It says nothing of requests that have a parent.
        "--otlp-sample",
        "1/1000000",
    ]);
    let lines = format!("{}User-Agent: a test\r\n", traceparent("01"));
    let response = ask(&server, "/block/200?secret=1", &lines);
    assert_eq!(response.status, 200);
    assert_eq!(ask(&server, "/hello", &traceparent("00")).status, 200);
    end(server);
    let [span] = &collector.await_spans(1)[..] else {
        unreachable!("it is one");
    };
    assert_eq!(
        (&span["traceId"], &span["parentSpanId"], &span["traceState"]),
        (&TRACE.into(), &PARENT.into(), &"rojo=1".into())
    );
    assert_ne!(span["spanId"], PARENT);
    assert_eq!(
        (&span["name"], &span["kind"]),
        (&"GET /block/{ms}".into(), &2.into())
    );
    for (name, expected) in [
        ("http.request.method", "GET"),
        ("http.route", "/block/{ms}"),
        ("http.response.status_code", "200"),
        ("url.path", "/block/200"),
        ("url.scheme", "http"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
        ("user_agent.original", "a test"),
        (
            "greenroom.request_id",
            response.field("x-request-id").unwrap(),
        ),
    ] {
        assert_eq!(
            attribute(span, name).as_deref(),
            Some(expected),
            "{name}: {span:#}"
        );
    }
    assert!(!span.to_string().contains("secret"), "{span:#}");
    assert!(attribute(span, "greenroom.stage").is_some(), "{span:#}");
    assert!(seconds(span, "first poll") >= 0.19, "{span:#}");
    for event in ["queue wait", "waiting", "write"] {
        assert!(seconds(span, event) >= 0.0, "{span:#}");
    }
    let resource = &collector.resources()[0]["resource"];
    assert_eq!(attribute(resource, "service.name").as_deref(), Some("shop"));
}

#[test]
fn a_perl_application_has_the_servers_span_as_parent() {
    let directory = Directory::new("[[site]]\nroute = { path = \"/\", psgi = \"app.psgi\" }\n");
    directory.write(
        "app.psgi",
        "sub { my $env = shift; select undef, undef, undef, 0.1; [200, [], [join ' ', map {\n\
         $env->{$_} // 'none' } qw(HTTP_TRACEPARENT HTTP_TRACESTATE)]] }\n",
    );
    let collector = Collector::start();
    let url = collector.url();
    let site = Site::serve(
        directory,
        &["--otlp-endpoint", &url, "--otlp-parents", "all"],
    );
    let lines = |more: &str| format!("Host: localhost\r\n{more}");
    let told = site.ask("GET", "/", &lines(&traceparent("01"))).text();
    // In upper case it is malformed, and its state means nothing.
    let malformed = lines(&traceparent("01").replace("4bf9", "4BF9"));
    let told_anew = site.ask("GET", "/", &malformed).text();
    end(site.server);
    let spans = collector.await_spans(4);
    let of = |name: &str, kind: u8| {
        let found = spans
            .iter()
            .filter(move |it| it["name"] == name && it["kind"] == kind);
        found.collect::<Vec<_>>()
    };
    let servers = of("GET /", 2);
    let [first, second] = servers[..] else {
        panic!("{spans:#?}");
    };
    let id = first["spanId"].as_str().unwrap();
    assert_eq!(told, format!("00-{TRACE}-{id}-01 rojo=1"));
    let (trace, id) = (
        second["traceId"].as_str().unwrap(),
        second["spanId"].as_str().unwrap(),
    );
    assert_eq!(told_anew, format!("00-{trace}-{id}-01 none"));
    assert_ne!(trace, TRACE);
    assert_eq!(second["parentSpanId"].as_str().unwrap_or_default(), "");
    let workers = of("psgi worker", 1);
    for (server, worker) in [(first, workers[0]), (second, workers[1])] {
        assert_eq!(
            (&worker["traceId"], &worker["parentSpanId"]),
            (&server["traceId"], &server["spanId"])
        );
        let nanos = |of: &Value, name: &str| of[name].as_str().unwrap().parse::<u64>().unwrap();
        let took = nanos(worker, "endTimeUnixNano") - nanos(worker, "startTimeUnixNano");
        assert!(took >= 90_000_000, "{worker:#}");
        assert!(attribute(worker, "process.pid").is_some(), "{worker:#}");
    }
}

/// Reads a request, and responds with this status line.
fn respond(upstream: &TcpListener, status: &str) -> String {
    let (mut connection, _) = upstream.accept().unwrap();
    let head = read_head(&mut connection);
    write!(connection, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
    head
}

#[test]
fn each_try_at_an_upstream_has_a_span_that_is_the_upstreams_parent() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, nobody) = (upstream.local_addr().unwrap().port(), free_port());
    // The one with the fewest requests is chosen; of two, the first.
    let directory = Directory::new(&format!(
        "[[site]]\nroute = {{ path = \"/\", proxy = {{ to = [\"http://127.0.0.1:{nobody}\", \
         \"http://127.0.0.1:{port}\"], failures_max = 100 }} }}\n"
    ));
    let collector = Collector::start();
    let url = collector.url();
    let site = Site::serve(
        directory,
        &["--otlp-endpoint", &url, "--otlp-parents", "all"],
    );
    let lines = format!("Host: localhost\r\n{}", traceparent("01"));
    let asking = site.begin("GET", "/a?secret=1", &lines);
    let head = respond(&upstream, "500 X").to_ascii_lowercase();
    assert!(read_to_end(asking).starts_with("HTTP/1.1 500"));
    end(site.server);
    let spans = collector.await_spans(3);
    let of_kind = |kind: u8| spans.iter().filter(move |it| it["kind"] == kind);
    let server = of_kind(2).next().unwrap();
    let resent = "http.request.resend_count";
    let (again, first): (Vec<_>, Vec<_>) =
        of_kind(3).partition(|span| attribute(span, resent).is_some());
    let ([first], [again]) = (&first[..], &again[..]) else {
        panic!("{spans:#?}");
    };
    for (span, port, error) in [(first, nobody, "connect"), (again, port, "500")] {
        assert_eq!(
            (&span["name"], &span["traceId"]),
            (&"GET".into(), &TRACE.into())
        );
        assert_eq!(span["parentSpanId"], server["spanId"]);
        assert_eq!(span["traceState"], "rojo=1");
        assert_eq!(span["status"]["code"], 2, "{span:#}");
        for (name, expected) in [
            ("http.request.method", "GET"),
            ("server.address", "127.0.0.1"),
            ("server.port", &port.to_string()),
            ("url.full", &format!("http://127.0.0.1:{port}/a")),
            ("error.type", error),
        ] {
            assert_eq!(
                attribute(span, name).as_deref(),
                Some(expected),
                "{name}: {span:#}"
            );
        }
    }
    assert_eq!(attribute(again, resent).as_deref(), Some("1"));
    assert_eq!(
        attribute(again, "http.response.status_code").as_deref(),
        Some("500")
    );
    assert!(seconds(again, "response head") > 0.0);
    let id = again["spanId"].as_str().unwrap();
    let told = format!("traceparent: 00-{TRACE}-{id}-01\r\n");
    assert!(
        head.contains(&told) && head.contains("tracestate: rojo=1\r\n"),
        "{head}"
    );
    assert_eq!(head.matches("traceparent").count(), 1, "{head}");
    // A failure of the server, by OpenTelemetry's conventions.
    assert_eq!(server["status"]["code"], 2, "{server:#}");
    assert_eq!(attribute(server, "error.type").as_deref(), Some("500"));
}

#[test]
fn a_client_joins_no_trace_and_asks_for_none() {
    let collector = Collector::start();
    let url = collector.url();
    let server = Running::serve(&["--otlp-endpoint", &url]);
    assert_eq!(ask(&server, "/hello", &traceparent("00")).status, 200);
    end(server);
    let [span] = &collector.await_spans(1)[..] else {
        unreachable!("it is one");
    };
    assert_ne!(span["traceId"], TRACE);
    assert_eq!(span["parentSpanId"].as_str().unwrap_or_default(), "");
    assert_eq!(span["traceState"].as_str().unwrap_or_default(), "");
    let link = &span["links"][0];
    assert_eq!(
        (&link["traceId"], &link["spanId"]),
        (&TRACE.into(), &PARENT.into())
    );
    // Of proxies that are trusted, it is taken.
    let server = Running::serve(&["--otlp-endpoint", &url, "--trusted-proxy", "127.0.0.1"]);
    assert_eq!(ask(&server, "/hello", &traceparent("01")).status, 200);
    end(server);
    let spans = collector.await_spans(2);
    assert_eq!(
        (&spans[1]["traceId"], &spans[1]["parentSpanId"]),
        (&TRACE.into(), &PARENT.into())
    );
}

#[test]
fn a_collector_is_known_by_its_certificate_and_knows_the_server_by_its_own() {
    let authority = Authority::new();
    let collector = Collector::start_tls(&authority);
    authority.issue("client", "greenroom");
    let url = collector.url();
    let arguments = ["serve", "--listen", "127.0.0.1:0"];
    let server = Running::start(
        command(&arguments)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
            .env("OTEL_EXPORTER_OTLP_CERTIFICATE", authority.path("root.pem"))
            .env(
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
                authority.path("client.pem"),
            )
            .env(
                "OTEL_EXPORTER_OTLP_CLIENT_KEY",
                authority.path("client.key"),
            ),
    );
    assert_eq!(ask(&server, "/hello", "").status, 200);
    end(server);
    assert_eq!(collector.await_spans(1)[0]["name"], "GET /hello");
    // Without one of its own it is not let in.
    let ca = authority.text("root.pem");
    let server = Running::serve(&["--otlp-endpoint", &url, "--otlp-ca-file", &ca]);
    assert_eq!(ask(&server, "/hello", "").status, 200);
    let line = server.wait_for_log("spans were lost");
    assert!(line.contains("CertificateRequired"), "{line}");
    end(server);
}

#[test]
fn a_collector_of_another_authority_is_told_in_the_log_and_holds_up_nothing() {
    let collector = Collector::start_tls(&Authority::new());
    let (url, other) = (collector.url(), Authority::new());
    let ca = other.text("root.pem");
    let server = Running::serve(&["--otlp-endpoint", &url, "--otlp-ca-file", &ca]);
    assert_eq!(ask(&server, "/hello", "").status, 200);
    let line = server.wait_for_log("spans were lost");
    let names_it = line.contains("invalid peer certificate");
    assert!(names_it, "{line}");
    assert_eq!(ask(&server, "/hello", "").status, 200);
    end(server);
    assert_eq!(collector.spans().len(), 0);
}

#[test]
fn a_file_that_is_none_and_a_protocol_that_is_not_spoken_are_refused() {
    let authority = Authority::new();
    authority.issue("client", "greenroom");
    let (root, client) = (authority.text("root.pem"), authority.text("client.pem"));
    let (missing, key) = (authority.text("missing.pem"), authority.text("client.key"));
    let endpoint = [
        "serve",
        "-l",
        "127.0.0.1:0",
        "--otlp-endpoint",
        "https://127.0.0.1:4318",
    ];
    let with_client = |certificate, key| {
        let client = [
            "--otlp-client-certificate",
            certificate,
            "--otlp-client-key",
            key,
        ];
        [&["--otlp-ca-file", &root], &client[..]].concat()
    };
    for (flags, named) in [
        (vec!["--otlp-ca-file", &missing], "--otlp-ca-file"),
        (
            vec!["--otlp-ca-file", &key],
            "client.key:1: there is no certificate",
        ),
        (with_client(&missing, &key), "--otlp-client-certificate"),
        (with_client(&client, &root), "--otlp-client-key"),
    ] {
        let refused = output(&[&endpoint[..], &flags].concat());
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && error.contains(named),
            "{error}"
        );
    }
    let refused = command(&endpoint)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .output();
    let error = String::from_utf8_lossy(&refused.unwrap().stderr).into_owned();
    assert!(error.contains("by http/protobuf only"), "{error}");
}

#[test]
fn a_collector_gets_the_fields_that_the_variable_names() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--otlp-endpoint", &url];
    let server = Running::start(command(&arguments).env(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "Authorization=Bearer%20a-token",
    ));
    assert_eq!(ask(&server, "/hello", "").status, 200);
    let head = respond(&collector, "200 OK").to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: bearer a-token\r\n"), "{head}");
    end(server);
}

fn read_head(connection: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Waits until the metric has a value, and returns it.
#[track_caller]
fn metric(admin: &str, name: &str) -> u64 {
    let value = || {
        let lines = "Host: localhost\r\n";
        let text = read_to_end(begin(admin, "GET", "/greenroom/metrics", lines));
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().parse().unwrap())
    };
    until(name, PATIENCE, value, Option::is_some).unwrap_or_default()
}

#[test]
fn a_collector_that_is_not_there_costs_a_counted_loss_and_a_line() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let admin = format!("127.0.0.1:{}", free_port());
    let server = Running::serve(&["--otlp-endpoint", &url, "--status-listen", &admin]);
    assert_eq!(ask(&server, "/hello", "").status, 200);
    let line = server.wait_for_log("spans were lost");
    assert!(line.contains("lost=1"), "{line}");
    let lost = "greenroom_trace_spans_dropped_total{reason=\"export\"}";
    assert_eq!(metric(&admin, lost), 1);
    assert_eq!(ask(&server, "/hello", "").status, 200);
    end(server);
}

#[test]
fn a_full_queue_drops_and_counts() {
    // It accepts connections, and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let admin = format!("127.0.0.1:{}", free_port());
    let flags = ["--otlp-endpoint", &url, "--status-listen", &admin];
    let server = Running::serve(&[&flags[..], &["--otlp-queue-len-max", "2"]].concat());
    assert_eq!(ask(&server, "/hello", "").status, 200);
    // The batch with that request is on its way, so that further ones must wait.
    let (_connection, _) = silent.accept().unwrap();
    for _ in 0..5 {
        assert_eq!(ask(&server, "/hello", "").status, 200);
    }
    let dropped = "greenroom_trace_spans_dropped_total{reason=\"queue_full\"}";
    assert_eq!(metric(&admin, dropped), 3);
    let begin = Instant::now();
    server.signal(Signal::TERM);
    server.wait_for_log("the collector took too long");
    assert!(begin.elapsed() < PATIENCE);
}

#[test]
fn without_a_collector_fields_pass_as_they_come() {
    let directory = Directory::new("[[site]]\nroute = { path = \"/\", psgi = \"app.psgi\" }\n");
    directory.write(
        "app.psgi",
        "sub { [200, [], [$_[0]{HTTP_TRACEPARENT} // 'none']] }\n",
    );
    let site = Site::serve(directory, &[]);
    let response = site.ask("GET", "/", "Host: localhost\r\nTraceparent: any\r\n");
    assert_eq!(response.text(), "any");
}

#[test]
fn a_url_that_is_none_is_refused() {
    for url in ["localhost:4318", "grpc://localhost:4317", "http://"] {
        let refused = output(&["serve", "-l", "127.0.0.1:0", "--otlp-endpoint", url]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(
            error.contains("--otlp-endpoint") && error.contains("expected http://HOST:PORT"),
            "{error}"
        );
    }
}
