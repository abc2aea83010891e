//! Slow requests, which never block a fast one, known or not.

use std::path::Path;

use futures_util::future::join_all;
use http::Method;

use crate::load::{prove_short, until};
use crate::rig::{Rig, text, within};

/// `/hold` blocks its worker until the file `go` is there.
const APP: &str = r#"
    my $go = "$0.go";
    my %responses = (
        '/short' => sub { [200, [], ['short']] },
        '/hold'  => sub { select undef, undef, undef, 0.01 until -e $go; [200, [], ['held']] },
    );
    sub { my $env = shift; $responses{$env->{PATH_INFO}}->($env) };
"#;

#[tokio::test]
async fn those_behind_a_long_run_go_to_another_worker() {
    within(async {
        let rig = Rig::with(APP, |builder| builder.workers(2)).await;
        while rig.gateway.status().queue.short_routes == 0 {
            assert_eq!(text(&rig.get("/short").await), "short");
        }
        let held = rig.get("/hold");
        let short = async {
            let responses = join_all((0..100).map(|_| rig.get("/short"))).await;
            assert!(responses.iter().all(|response| text(response) == "short"));
            let go = format!("{}.go", rig.source.app().display());
            std::fs::write(Path::new(&go), "").unwrap();
        };
        let (held, ()) = tokio::join!(held, short);
        assert_eq!(text(&held), "held");
        rig.end().await;
    })
    .await;
}

/// `/x` is short, or with `stream` writes again and again until the file `go` is there. `/hold`
/// blocks its worker until the file `let` is there.
const STREAM: &str = r#"
    my $base = $0;
    my $wait = sub { select undef, undef, undef, 0.002 };
    sub {
        my $env = shift;
        if ($env->{PATH_INFO} eq '/hold') {
            $wait->() until -e "$base.let";
            return [200, [], ['held']];
        }
        return [200, [], ['short']] if $env->{QUERY_STRING} ne 'stream';
        sub {
            my $writer = shift->([200, []]);
            until (-e "$base.go") { $writer->write('more'); $wait->() }
            $writer->close;
        };
    };
"#;

#[tokio::test]
async fn nobody_is_sent_behind_a_long_stream() {
    within(async {
        let rig = Rig::with(STREAM, |builder| builder.workers(2)).await;
        let routes = [(Method::GET, "/x"), (Method::POST, "/x")];
        prove_short(&rig, &rig.gateway, &routes).await;
        let busy = |count: usize| {
            let status = rig.gateway.status();
            let running = status.workers.iter().map(|worker| worker.running as usize);
            running.sum::<usize>() + status.queue.queue_len == count
        };
        let streamed = rig.get("/x?stream");
        let held = async {
            until(|| busy(1)).await;
            rig.get("/hold").await
        };
        let posted = async {
            until(|| busy(2)).await;
            rig.post("/x", "").await
        };
        let released = async {
            until(|| busy(3)).await;
            rig.source.write("app.psgi.let", "");
        };
        let short = async {
            let (held, posted, ()) = tokio::join!(held, posted, released);
            assert_eq!(
                (text(&held), text(&posted)),
                ("held".into(), "short".into())
            );
            rig.source.write("app.psgi.go", "");
        };
        let (streamed, ()) = tokio::join!(streamed, short);
        assert!(text(&streamed).starts_with("more"));
        rig.end().await;
    })
    .await;
}
