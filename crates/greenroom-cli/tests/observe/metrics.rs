//! The metrics of a server under load, the dashboard and the alerts.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use greenroom::METRICS;
use serde_json::Value;

use crate::authority::Authority;
use crate::names::{named, packaged};
use crate::outside::tools;
use crate::ports::free_port;
use crate::program::Running;
use crate::prometheus::Prometheus;
use crate::site::{Directory, Site};
use crate::traces::Collector;

const DEADLINE: Duration = Duration::from_mins(1);

/// Counters that are there only after something went wrong that the test does not bring about, and
/// metrics of what the program does not use: the social network has actors, topics and a cluster.
/// Those of certificates and spans have a test of their own, as that server speaks no plain HTTP.
const ABSENT: &[&str] = &[
    "greenroom_actor_alive",
    "greenroom_actor_dead_letters_total",
    "greenroom_actor_failures_total",
    "greenroom_bus_delivered_total",
    "greenroom_bus_dropped_total",
    "greenroom_bus_published_total",
    "greenroom_cluster_activation_failures_total",
    "greenroom_cluster_activations_total",
    "greenroom_cluster_ask_errors_total",
    "greenroom_cluster_asked_elsewhere_total",
    "greenroom_cluster_asks_total",
    "greenroom_cluster_dead_letters_total",
    "greenroom_cluster_disconnected",
    "greenroom_cluster_durable_messages",
    "greenroom_cluster_entities",
    "greenroom_cluster_fenced_total",
    "greenroom_cluster_nodes",
    "greenroom_log_lines_dropped_total",
    "greenroom_loop_pressure_changes_total",
    "greenroom_proxy_rejected_total",
    "greenroom_proxy_retries_total",
    "greenroom_route_moves_total",
    "greenroom_route_rejected_total",
    "greenroom_route_stalls_total",
    "greenroom_stage_route_rejected_total",
    "greenroom_tls_certificate_not_after_timestamp_seconds",
    "greenroom_trace_spans_dropped_total",
    "greenroom_trace_spans_sent_total",
];

/// A Perl application, an upstream that is not there, and a limit on the requests of a client.
fn site(upstream: u16) -> (Site, String) {
    let directory = Directory::new(&format!(
        r#"
[[site]]
[[site.route]]
path = "/"
psgi = {{ app = "app.psgi", workers = 1 }}
[[site.route]]
path = "/away/"
proxy = "http://127.0.0.1:{upstream}"
"#
    ));
    directory.write("app.psgi", "sub { [200, [], ['Hello'] ] }");
    let status = format!("127.0.0.1:{}", free_port());
    let flags = [
        "--status-listen",
        &status,
        "--address-requests-rate-max",
        "1",
    ];
    let flags = [flags.as_slice(), &["--address-requests-burst", "40"]].concat();
    (Site::serve(directory, &flags), status)
}

fn dashboard() -> Vec<(String, String)> {
    let text = fs::read_to_string(packaged("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = panel["title"].as_str().unwrap().to_owned();
            queries.push((title, target["expr"].as_str().unwrap().to_owned()));
        }
    }
    assert!(queries.len() > 40, "{}", queries.len());
    queries
}

/// Returns the expressions of the alerts, as Prometheus has read them.
fn alerts(prometheus: &Prometheus) -> Vec<String> {
    let rules = prometheus.ask("rules", &[]).expect("it has rules");
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let expressions = rules
        .iter()
        .map(|rule| rule["query"].as_str().unwrap().to_owned());
    expressions.collect()
}

/// Asks for what makes each metric that the test can bring about.
fn ask_for_all(site: &Site) {
    for _ in 0..10 {
        assert_eq!(site.get("/").status, 200);
    }
    assert_eq!(site.get("/away/x").status, 502);
    // After some failures it rests.
    for _ in 0..10 {
        assert!(site.get("/away/x").status >= 502);
    }
    assert_eq!(site.ask("BREW", "/", "Host: localhost\r\n").status, 200);
    let mut statuses = (0..80).map(|_| site.get("/").status);
    assert!(statuses.any(|status| status == 429), "the limit is 40");
}

#[test]
fn every_metric_of_the_dashboard_and_the_alerts_is_there() {
    let (site, status) = site(free_port());
    ask_for_all(&site);
    let prometheus = Prometheus::scraping(&status);
    prometheus.await_result("rate(greenroom_loop_requests_total[1m])");
    let alerts = alerts(&prometheus);
    let queries = dashboard();
    let all = queries.iter().map(|(_, query)| query).chain(&alerts);
    let wanted: BTreeSet<String> = all.flat_map(|query| named(query)).collect();
    let found: BTreeSet<String> = prometheus
        .names()
        .iter()
        .flat_map(|name| named(name))
        .collect();
    let missing: Vec<_> = wanted.difference(&found).map(String::as_str).collect();
    let unknown: Vec<_> = missing
        .iter()
        .filter(|name| !ABSENT.contains(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?} of {missing:?}");
    let catalog: BTreeSet<_> = METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    let uncatalogued: Vec<_> = wanted
        .union(&found)
        .filter(|name| !catalog.contains(*name))
        .collect();
    assert!(uncatalogued.is_empty(), "{uncatalogued:?}");
    for (title, query) in &queries {
        let query = query.replace("$__rate_interval", "1m");
        let query = query.replace("$job", ".*").replace("$instance", ".*");
        let result = prometheus.ask("query", &[("query", &query)]);
        let result = result.unwrap_or_else(|| panic!("{title}: {query} is no query"));
        let names = named(&query);
        if names.iter().all(|name| !ABSENT.contains(&name.as_str())) && !query.contains("5..") {
            assert_ne!(
                result["result"],
                Value::Array(Vec::new()),
                "{title}: {query}"
            );
        }
    }
}

/// Asks by TLS, as `localhost`.
fn get_by_tls(authority: &Authority, address: &str) {
    let port = address.rsplit(':').next().unwrap();
    let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
    curl.args([
        "--silent",
        "--fail",
        "--cacert",
        &authority.text("root.pem"),
    ]);
    curl.args(["--connect-to", &format!("::127.0.0.1:{port}")]);
    tools::run(curl.arg("https://localhost/hello")).expect_success("curl");
}

#[test]
fn a_certificate_that_ends_soon_and_spans_that_are_lost_are_seen_by_prometheus() {
    let (authority, status) = (Authority::new(), format!("127.0.0.1:{}", free_port()));
    let end = SystemTime::now() + Duration::from_hours(10 * 24);
    authority.issue_until("server", "localhost", Some(end));
    let collector = Collector::start();
    let url = collector.url();
    let (cert, key) = (authority.text("server.pem"), authority.text("server.key"));
    let tls = ["--cert", &cert, "--key", &key, "--status-listen", &status];
    let server = Running::serve(&[&tls[..], &["--otlp-endpoint", &url]].concat());
    get_by_tls(&authority, &server.address);
    collector.await_spans(1);
    drop(collector);
    get_by_tls(&authority, &server.address);
    server.wait_for_log("spans were lost");
    let prometheus = Prometheus::scraping(&status);
    prometheus.await_result("rate(greenroom_trace_spans_dropped_total[1m])");
    let not_after = "greenroom_tls_certificate_not_after_timestamp_seconds{host=\"localhost\"}";
    let shown = prometheus.await_result(not_after);
    let shown: u64 = shown[0]["value"][1].as_str().unwrap().parse().unwrap();
    let expected = end
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert!(
        expected.abs_diff(shown) <= 1,
        "{shown} instead of {expected}"
    );
    // It fires after 5 minutes of this.
    prometheus.await_result("ALERTS{alertname=\"GreenroomCertificateEnds\", host=\"localhost\"}");
    let row = ["Certificates", "Spans sent", "Spans lost"];
    for (title, query) in dashboard() {
        if row.contains(&title.as_str()) {
            let query = query.replace("$__rate_interval", "1m");
            prometheus.await_result(&query.replace("$job", ".*").replace("$instance", ".*"));
        }
    }
}

#[test]
fn requests_are_counted_by_method_route_status_and_version() {
    let (site, status) = site(free_port());
    ask_for_all(&site);
    let metrics =
        crate::outside::http::get(status.parse().unwrap(), "/greenroom/metrics", DEADLINE);
    let metrics = metrics.unwrap().body;
    let count = |labels: &str| {
        let line = format!("http_server_request_duration_seconds_count{{{labels}}} ");
        let value = metrics.lines().find_map(|shown| shown.strip_prefix(&line));
        value
            .unwrap_or_else(|| panic!("{line}\n{metrics}"))
            .parse::<u64>()
            .unwrap()
    };
    let rest = "network_protocol_version=\"1.1\",url_scheme=\"http\"";
    let of = |method: &str, status: u16, route: &str| {
        count(&format!(
            "http_request_method=\"{method}\",http_response_status_code=\"{status}\",\
             http_route=\"{route}\",{rest}"
        ))
    };
    assert!((10..=90).contains(&of("GET", 200, "/")), "{metrics}");
    assert!((1..=11).contains(&of("GET", 502, "/away/")), "{metrics}");
    assert_eq!(of("_OTHER", 200, "/"), 1, "a client cannot make labels");
    assert!(
        metrics.contains(
            "http_server_active_requests{http_request_method=\"GET\",url_scheme=\"http\"} 0"
        ),
        "all are over: {metrics}"
    );
}

#[test]
fn the_metrics_keep_the_conventions_by_promtool() {
    let (site, status) = site(free_port());
    ask_for_all(&site);
    let metrics =
        crate::outside::http::get(status.parse().unwrap(), "/greenroom/metrics", DEADLINE);
    let mut promtool = tools::bounded(tools::system("promtool"), DEADLINE);
    let promtool = promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut promtool = promtool
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = promtool.stdin.take().unwrap();
    input.write_all(metrics.unwrap().body.as_bytes()).unwrap();
    drop(input);
    let checked = promtool.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && text.trim().is_empty(), "{text}");
}

#[test]
fn the_alerts_are_sound_and_fire_when_they_should() {
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts-test.yml"],
    ] {
        let mut promtool = tools::bounded(tools::system("promtool"), DEADLINE);
        let promtool = promtool.args(arguments).current_dir(packaged(""));
        tools::run(promtool).expect_success("promtool");
    }
    let alerts = fs::read_to_string(packaged("alerts.yml")).unwrap();
    let tests = fs::read_to_string(packaged("alerts-test.yml")).unwrap();
    for line in alerts.lines() {
        if let Some((_, name)) = line.split_once("- alert: ") {
            assert!(
                tests.contains(&format!("alertname: {name}\n")),
                "{name} has no test"
            );
        }
    }
}
