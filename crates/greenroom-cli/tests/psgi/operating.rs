//! Operators' tasks: the status, a worker that is killed, further applications, the log.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::http;
use crate::site::{Folder, Site, sum, until};

/// Makes a file as it begins, and is done when there is the file `go`.
const BLOCKING: &str = "sub {
    my ($env) = @_;
    return [200, [], [\"pid $$\"]] if $env->{PATH_INFO} eq '/pid';
    open my $begun, '>', \"begun-$$\";
    select undef, undef, undef, 0.01 until -e 'go';
    [200, [], ['done']];
};";

#[test]
fn the_status_shows_workers_and_what_waits_for_them() {
    let mut site = Site::serve(BLOCKING, &["--workers", "2"]);
    let status = site.status();
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2, "{status:#}");
    for worker in workers {
        assert_eq!(worker["state"], "ready", "{status:#}");
        assert_eq!(worker["mode"], "blocking", "{status:#}");
        assert!(worker["rss_bytes"].as_u64().unwrap() > 1_000_000);
    }

    let ask = || http::begin(site.address(), "GET", "/", &[], b"");
    let asked: Vec<_> = (0..5).map(|_| ask()).collect();
    let status =
        site.await_status(|status| sum(status, "running") == 2 && status["queue_len"] == 3);
    assert_eq!(status["restarts"], 0, "{status:#}");

    site.folder.write("go", "");
    for asked in asked {
        assert_eq!(http::finish(asked).text(), "done");
    }
    let status = site.await_status(|status| sum(status, "running") == 0);
    assert_eq!(status["queue_len"], 0, "{status:#}");
    assert_eq!(sum(&status, "served"), 5, "{status:#}");
    site.end(0);
}

#[test]
fn the_status_shows_what_waits_for_events() {
    let source = "use AnyEvent; sub { sub {
        my ($respond) = @_;
        my $look;
        $look = AnyEvent->timer(after => 0, interval => 0.01, cb => sub {
            return if !-e 'go';
            undef $look;
            $respond->([200, [], ['done']]);
        });
    } };";
    let mut site = Site::serve(source, &["--workers", "1"]);
    let ask = || http::begin(site.address(), "GET", "/", &[], b"");
    let asked: Vec<_> = (0..5).map(|_| ask()).collect();
    let status = site.await_status(|status| sum(status, "waiting") == 5);
    assert_ne!(status["workers"][0]["mode"], "blocking", "{status:#}");
    site.folder.write("go", "");
    for asked in asked {
        assert_eq!(http::finish(asked).text(), "done");
    }
    site.await_status(|status| sum(status, "waiting") == 0);
    site.end(0);
}

fn kill(pid: &Value) {
    let pid = pid.as_i64().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it is a process");
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_worker_that_is_killed_costs_its_request_and_is_replaced() {
    let mut site = Site::serve(BLOCKING, &["--workers", "1"]);
    let asked = http::begin(site.address(), "GET", "/", &[], b"");
    let status = site.await_status(|status| sum(status, "running") == 1);
    let pid = &status["workers"][0]["pid"];
    site.folder.await_file(&format!("begun-{pid}"));
    kill(pid);
    assert_eq!(http::finish(asked).status, 502);
    let response = site.get("/pid");
    assert_eq!(response.status, 200);
    assert_ne!(response.text(), format!("pid {pid}"));
    let status = site.status();
    assert_eq!(status["restarts"], 1, "{status:#}");
    site.end(0);
}

#[test]
fn a_request_that_waits_survives_the_worker_before_it() {
    let mut site = Site::serve(BLOCKING, &["--workers", "1"]);
    let first = http::begin(site.address(), "GET", "/", &[], b"");
    let status = site.await_status(|status| sum(status, "running") == 1);
    let pid = &status["workers"][0]["pid"];
    site.folder.await_file(&format!("begun-{pid}"));
    let second = http::begin(site.address(), "GET", "/pid", &[], b"");
    site.await_status(|status| status["queue_len"] == 1 || sum(status, "running") == 2);
    kill(pid);
    assert_eq!(http::finish(first).status, 502);
    assert_eq!(http::finish(second).status, 200);
    site.end(0);
}

/// Responds with the paths of its environment.
const WHERE: &str = "sub {
    my ($env) = @_;
    [200, [], [join '|', @$env{qw(SCRIPT_NAME PATH_INFO REQUEST_URI)}]];
};";

#[test]
fn an_application_that_blocks_does_not_hold_up_the_one_beside_it() {
    let beside = Folder::with(BLOCKING);
    let slow = beside.path("app/app.psgi");
    let mount = format!("/slow={} workers=1", slow.display());
    let mut site = Site::serve(WHERE, &["--workers", "2", "--mount", &mount]);
    let ask = || http::begin(site.address(), "GET", "/slow", &[], b"");
    let asked: Vec<_> = (0..3).map(|_| ask()).collect();
    site.await_status_of(1, |status| {
        let workers = status["workers"].as_array().map(Vec::len);
        workers == Some(1) && sum(status, "running") == 1 && status["queue_len"] == 2
    });
    for path in ["/", "/quick", "/slower"] {
        assert_eq!(site.get(path).text(), format!("|{path}|{path}"));
    }
    site.folder.write("go", "");
    for asked in asked {
        assert_eq!(http::finish(asked).text(), "done");
    }
    site.end(0);
}

#[test]
fn a_mounted_application_sees_where_it_is() {
    let folder = Folder::with(WHERE);
    let mount = format!("/a/b={}", folder.path("app/app.psgi").display());
    let flags = ["--workers", "1", "--mount", &mount];
    let mut site = Site::serve("sub { [200, [], ['main']] };", &flags);
    let cases = [
        ("/a/b", "/a/b||/a/b"),
        ("/a/b/", "/a/b|/|/a/b/"),
        ("/a/b/c%2Fd?e=f", "/a/b|/c/d|/a/b/c%2Fd?e=f"),
        ("/a/bc", "main"),
        ("/a", "main"),
    ];
    for (path, seen) in cases {
        assert_eq!(site.get(path).text(), seen, "{path}");
    }
    site.end(0);
}

#[test]
fn what_an_application_says_is_in_the_log_and_what_it_dies_of_is_an_error() {
    let source = "warn \"loaded\\n\"; sub {
        my ($env) = @_;
        die \"by die\\n\" if $env->{PATH_INFO} eq '/die';
        $env->{'psgi.errors'}->print(\"by psgi.errors\\n\");
        warn 'by warn';
        print STDOUT \"by print\\n\";
        [200, [], []];
    };";
    let mut site = Site::serve(source, &["--workers", "1"]);
    assert_eq!(site.get("/").status, 200);
    for said in ["by psgi.errors", "by warn at ", "by print"] {
        let line = site.server.wait_for_log(said);
        assert!(line.contains(" INFO psgi: "), "{line}");
        assert!(line.contains("app.psgi"), "{line}");
    }
    let pid = site.status()["workers"][0]["pid"].clone();
    assert_eq!(site.get("/die").status, 500);
    let line = site.server.wait_for_log("by die");
    let about = format!("worker=1 pid={pid} route=\"GET /die\"");
    for part in ["ERROR psgi: by die", "app.psgi", &about] {
        assert!(line.contains(part), "{part}: {line}");
    }
    site.end(0);
}

#[test]
fn the_metrics_show_workers_queue_and_refusals() {
    let mut site = Site::serve(BLOCKING, &["--workers", "1", "--worker-queue-max", "2"]);
    let ask = || http::begin(site.address(), "GET", "/", &[], b"");
    let asked: Vec<_> = (0..5).map(|_| ask()).collect();
    site.await_status(|status| status["sheds"]["queue_full"] == 3);
    let labels = format!(
        "application=\"{}\",mount=\"\"",
        site.folder.path("app/app.psgi").display()
    );
    for (name, label, value) in [
        ("rejected_total", ",reason=\"queue_full\"", 3),
        ("queue_length", "", 1),
        ("workers", ",state=\"ready\"", 1),
        ("workers_wanted", "", 1),
        ("requests", ",state=\"running\"", 1),
        ("worker_restarts_total", "", 0),
        ("workers_hung_total", "", 0),
    ] {
        let line = format!("greenroom_psgi_{name}{{{labels}{label}}} {value}");
        until(&line, || site.metrics().lines().any(|shown| shown == line));
    }
    let line = site.server.wait_for_log("requests were refused with 503");
    assert!(line.contains(" WARN psgi: "), "{line}");
    site.folder.write("go", "");
    for asked in asked {
        http::finish(asked);
    }
    site.end(0);
}
