//! Faults under load, with every request accounted for.

use std::time::Duration;

use http::{Method, StatusCode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::load::{Client, Load, kill, ready, until};
use crate::log;
use crate::rig::{Rig, text, within};

/// The requests that are under way at any time.
const CLIENTS: usize = 6;

const ONLY_OK: &[StatusCode] = &[StatusCode::OK];

const HANGING: &str = r#"
    sub {
        my $env = shift;
        if ($env->{PATH_INFO} eq '/hangs-for-ever') { sleep 1 while 1 }
        [200, [], ["$env->{QUERY_STRING} short"]];
    };
"#;

#[tokio::test]
async fn a_request_that_hangs_gets_504_and_is_named() {
    log::keep();
    within(async {
        let timeout = Duration::from_millis(500);
        let rig = Rig::with(HANGING, |builder| builder.workers(2).timeout(timeout)).await;
        let load = Load::start(&rig, CLIENTS, "/short");
        load.responses(500).await;
        let before = ready(&rig.gateway.status());
        let response = rig.get("/hangs-for-ever?secret=1").await;
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
        let line = log::line("/hangs-for-ever", "held its worker up").await;
        assert!(
            line.contains("ERROR psgi") && !line.contains("secret"),
            "{line}"
        );
        until(|| {
            let status = rig.gateway.status();
            status.restarts == 1 && ready(&status).len() == 2
        })
        .await;
        let status = rig.gateway.status();
        assert_eq!((status.hung, status.restarts), (1, 1), "{status:#?}");
        let after = ready(&status);
        assert_eq!(before.iter().filter(|pid| after.contains(pid)).count(), 1);
        load.responses(500).await;
        load.end().await.assert_only(ONLY_OK);
        rig.end().await;
    })
    .await;
}

/// `/drips` streams for three seconds; `/raw` speaks on its socket until the client leaves.
const LONG: &str = r#"
    sub {
        my $env = shift;
        if (my $io = $env->{'psgix.io'}) {
            syswrite $io, "HTTP/1.1 101 Switching Protocols\r\n"
                . "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n";
            while (sysread $io, my $bytes, 100) { syswrite $io, $bytes }
            return [200, [], []];
        }
        sub {
            my $writer = shift->([200, []]);
            for my $drop (1 .. 30) { $writer->write("$drop\n"); select undef, undef, undef, 0.1 }
            $writer->close;
        };
    };
"#;

#[tokio::test]
async fn what_makes_progress_or_has_left_http_is_not_timed_out() {
    within(async {
        let timeout = Duration::from_secs(1);
        let rig = Rig::with(LONG, |builder| builder.workers(2).timeout(timeout)).await;
        let mut raw = BufReader::new(rig.connect().await);
        let asked = b"GET /raw HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        raw.write_all(asked).await.unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(raw.read_line(&mut line).await.unwrap(), 0);
        }
        let drops: Vec<_> = (1..=30).map(|drop: u32| drop.to_string()).collect();
        assert_eq!(text(&rig.get("/drips").await), drops.join("\n") + "\n");
        raw.write_all(b"still here").await.unwrap();
        let mut echoed = [0; 10];
        raw.read_exact(&mut echoed).await.unwrap();
        assert_eq!(&echoed, b"still here");
        assert_eq!(rig.gateway.status().hung, 0);
        drop(raw);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_grows_is_replaced_and_no_request_fails() {
    within(async {
        let app = r#"
            my @kept;
            sub {
                push @kept, 'x' x 1_000_000 if @kept < 100;
                [200, [], ["$_[0]{QUERY_STRING} $$"]];
            };
        "#;
        let settings = |builder: greenroom_psgi::Builder| builder.workers(2).max_rss(60_000_000);
        let rig = Rig::with(app, settings).await;
        let load = Load::start(&rig, CLIENTS, "/");
        // One at once; the others not before they are a minute old.
        until(|| rig.gateway.status().retired >= 1).await;
        let tally = load.end().await;
        tally.assert_only(ONLY_OK);
        assert!(tally.said.len() >= 2, "{tally:?}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn workers_that_have_served_enough_are_replaced_and_no_request_fails() {
    within(async {
        let app = "sub { [200, [], [qq{$_[0]{QUERY_STRING} $$}]] }";
        let rig = Rig::with(app, |builder| builder.workers(2).max_requests(50)).await;
        let load = Load::start(&rig, CLIENTS, "/");
        until(|| rig.gateway.status().retired >= 6).await;
        let tally = load.end().await;
        tally.assert_only(ONLY_OK);
        assert!(tally.said.len() >= 6, "{tally:?}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn workers_that_ask_for_their_end_are_replaced_and_no_request_fails() {
    within(async {
        let app = r#"
            my $requests = 0;
            sub {
                my $env = shift;
                $env->{'psgix.harakiri.commit'} = 1 if ++$requests == 100;
                [200, [], ["$env->{QUERY_STRING} $$"]];
            };
        "#;
        let rig = Rig::with(app, |builder| builder.workers(2)).await;
        let load = Load::start(&rig, CLIENTS, "/");
        until(|| rig.gateway.status().retired >= 6).await;
        let tally = load.end().await;
        tally.assert_only(ONLY_OK);
        assert_eq!(rig.gateway.status().restarts, 0);
        rig.end().await;
    })
    .await;
}

fn version(number: usize) -> String {
    format!("sub {{ [200, [], [qq{{$_[0]{{QUERY_STRING}} {number}}}]] }}")
}

#[tokio::test]
async fn reloads_under_load_fail_no_request_and_wrong_ones_change_nothing() {
    within(async {
        let rig = Rig::with(&version(0), |builder| builder.workers(2)).await;
        let load = Load::start(&rig, CLIENTS, "/");
        for number in 1..=3 {
            load.responses(200).await;
            rig.source.write("app.psgi", "sub { [200, [], ['x'] }");
            let error = rig.gateway.reload().await.expect_err("it is wrong");
            assert!(error.to_string().contains("syntax error at "), "{error}");
            let said = text(&rig.get("/?a").await);
            assert_eq!(said, format!("a {}", number - 1));
            rig.source.write("app.psgi", &version(number));
            rig.gateway.reload().await.expect("it can be loaded");
            let said = text(&rig.get("/?a").await);
            assert_eq!(said, format!("a {number}"));
        }
        load.responses(200).await;
        let status = rig.gateway.status();
        assert_eq!((status.reloads, status.reloads_failed), (3, 3));
        let tally = load.end().await;
        tally.assert_only(ONLY_OK);
        let said: Vec<_> = tally.said.keys().collect();
        assert_eq!(said, ["0", "1", "2", "3"]);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn without_any_worker_requests_wait_and_are_refused_until_there_is_one() {
    within(async {
        let app = r#"
            die "not today\n" if -e "$0.broken";
            sub { [200, [], ["$_[0]{QUERY_STRING} $$"]] };
        "#;
        let wait = Duration::from_millis(300);
        let rig = Rig::with(app, |builder| builder.workers(2).queue_wait_max(wait)).await;
        let load = Load::start(&rig, CLIENTS, "/");
        load.responses(200).await;
        rig.source.write("app.psgi.broken", "");
        for pid in ready(&rig.gateway.status()) {
            kill(pid);
        }
        until(|| ready(&rig.gateway.status()).is_empty()).await;
        let refused = Client::new(&rig).ask(Method::GET, "/?a").await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key("retry-after"));
        load.responses(3 * CLIENTS).await;
        std::fs::remove_file(rig.source.file("app.psgi.broken")).unwrap();
        while rig.get("/?a").await.status() != StatusCode::OK {}
        load.responses(200).await;
        let tally = load.end().await;
        let (ok, lost, refused) = (
            StatusCode::OK,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
        );
        tally.assert_only(&[ok, lost, refused]);
        // For each worker and loop, the one that the worker may have been at.
        assert!(
            tally.count(lost) <= 4 && tally.count(refused) > 0,
            "{tally:?}"
        );
        rig.end().await;
    })
    .await;
}
