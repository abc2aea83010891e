//! Requests that wait for events, and requests that wait for a worker.

use std::num::NonZeroU32;

use futures_util::future::join_all;
use greenroom_psgi::Concurrency;

use crate::load::until;
use crate::rig::{Rig, text, within};

/// Responds to `/wait` when `/go` comes; returns the number of those that wait.
const GATE: &str = r"
    use AnyEvent;
    my @waiting;
    my %responses = (
        '/wait'  => sub { sub { push @waiting, shift } },
        '/count' => sub { [200, [], [scalar @waiting]] },
        '/go'    => sub { $_->([200, [], ['gone']]) for splice @waiting; [200, [], ['go']] },
    );
    sub { my $env = shift; $responses{$env->{PATH_INFO}}->($env) };
";

async fn until_counted(rig: &Rig, count: usize) {
    while text(&rig.get("/count").await) != count.to_string() {}
}

#[tokio::test]
async fn one_event_driven_worker_takes_many_requests_at_once() {
    within(async {
        let rig = Rig::serve(GATE).await;
        let waiting = join_all((0..200).map(|_| rig.get("/wait")));
        let gate = async {
            until_counted(&rig, 200).await;
            // The worker has them all; that each waits there is told a moment later.
            until(|| {
                let status = rig.gateway.status();
                (status.workers[0].waiting, status.queue.queue_len) == (200, 0)
            })
            .await;
            rig.get("/go").await;
        };
        let (responses, ()) = tokio::join!(waiting, gate);
        assert!(responses.iter().all(|response| text(response) == "gone"));
        rig.end().await;
    })
    .await;
}

/// Responds when the file `go` is there.
const FILE_GATE: &str = r#"
    use AnyEvent;
    my $go = "$0.go";
    sub {
        sub {
            my $respond = shift;
            my $timer; $timer = AnyEvent->timer(after => 0, interval => 0.01, cb => sub {
                return if !-e $go;
                undef $timer;
                $respond->([200, [], ['gone']]);
            });
        };
    };
"#;

#[tokio::test]
async fn no_more_wait_in_a_worker_than_was_said() {
    within(async {
        let three = Concurrency::AtMost(NonZeroU32::new(3).unwrap());
        let rig = Rig::with(FILE_GATE, |builder| builder.concurrency(three)).await;
        let waiting = join_all((0..5).map(|_| rig.get("/")));
        let gate = async {
            loop {
                let status = rig.gateway.status();
                if (status.workers[0].waiting, status.queue.queue_len) == (3, 2) {
                    break;
                }
                tokio::task::yield_now().await;
            }
            std::fs::write(format!("{}.go", rig.source.app().display()), "").unwrap();
        };
        let (responses, ()) = tokio::join!(waiting, gate);
        assert!(responses.iter().all(|response| text(response) == "gone"));
        rig.end().await;
    })
    .await;
}
