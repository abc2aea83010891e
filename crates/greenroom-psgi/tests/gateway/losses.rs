//! Workers that are killed.

use futures_util::future::join_all;
use http::{Method, StatusCode};

use crate::load::{Client, Load, kill, prove_short, ready, until};
use crate::notes::{self, times_noted, until_noted};
use crate::rig::{Response, Rig, text, within};

/// The requests that are sent behind the one that is held.
const BEHIND: usize = 10;

/// The number of times that a worker is killed.
const KILLS: usize = 20;

struct Round {
    killed: i32,
    held: Response,
    behind: Vec<Response>,
}

/// Kills the only worker while a request is held in it, and others were sent after that: behind it
/// if they came soon enough, else they wait in the queue.
async fn kill_while_held(rig: &Rig, round: usize, method: Method) -> Round {
    until(|| ready(&rig.gateway.status()).len() == 1).await;
    let killed = ready(&rig.gateway.status())[0];
    let mut holder = Client::connected(rig).await;
    let mut others = join_all((0..BEHIND).map(|_| Client::connected(rig))).await;
    let (path, noted) = (format!("/x?hold-{round}"), format!("GET hold-{round}"));
    let held = holder.ask(Method::GET, &path);
    let behind = async {
        until_noted(rig, &noted).await;
        let asked = others.iter_mut().enumerate();
        let asked = asked.map(async |(number, client)| {
            client
                .ask(method.clone(), &format!("/x?{round}-{number}"))
                .await
        });
        join_all(asked).await
    };
    let kill = async {
        until_noted(rig, &noted).await;
        until(|| running(rig) + rig.gateway.status().queue.queue_len > BEHIND).await;
        kill(killed);
    };
    let (held, behind, ()) = tokio::join!(held, behind, kill);
    Round {
        killed,
        held,
        behind,
    }
}

/// Returns the number of requests that workers have, the one that they are at included.
fn running(rig: &Rig) -> usize {
    let status = rig.gateway.status();
    let running = status.workers.iter().map(|worker| worker.running as usize);
    running.sum()
}

#[tokio::test]
async fn what_does_no_harm_twice_is_served_by_another_worker() {
    within(async {
        let rig = Rig::serve(notes::APP).await;
        for round in 0..3 {
            prove_short(&rig, &rig.gateway, &[(Method::GET, "/x?first")]).await;
            let after = kill_while_held(&rig, round, Method::GET).await;
            assert_eq!(after.held.status(), StatusCode::BAD_GATEWAY);
            for (number, response) in after.behind.iter().enumerate() {
                assert_eq!(response.status(), StatusCode::OK, "{}", text(response));
                let text = text(response);
                assert!(text.starts_with(&format!("{round}-{number} ")), "{text}");
                assert!(!text.ends_with(&format!(" {}", after.killed)), "{text}");
                // Twice if its next worker was blocked, by a busy machine perhaps.
                assert!(times_noted(&rig, &format!("GET {round}-{number}")) > 0);
            }
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_could_do_harm_twice_is_refused_and_was_not_done() {
    within(async {
        let rig = Rig::serve(notes::APP).await;
        let mut lost = 0;
        let routes = [(Method::GET, "/x?first"), (Method::POST, "/x?first")];
        for round in 0.. {
            prove_short(&rig, &rig.gateway, &routes).await;
            let after = kill_while_held(&rig, round, Method::POST).await;
            assert_eq!(after.held.status(), StatusCode::BAD_GATEWAY);
            for (number, response) in after.behind.iter().enumerate() {
                let is_lost = response.status() == StatusCode::BAD_GATEWAY;
                assert!(is_lost || response.status() == StatusCode::OK);
                let times = times_noted(&rig, &format!("POST {round}-{number}"));
                assert_eq!(times, usize::from(!is_lost));
                lost += usize::from(is_lost);
            }
            if lost > 0 {
                break;
            }
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn posts_are_never_executed_twice() {
    within(async {
        let rig = Rig::with(notes::APP, |builder| builder.workers(3)).await;
        let posting = join_all((0..6).map(|client| {
            let rig = &rig;
            async move {
                let mut connection = Client::new(rig);
                let mut responses = Vec::new();
                for number in 0..100 {
                    let name = format!("{client}-{number}");
                    let path = format!("/x?{name}");
                    responses.push((name, connection.ask(Method::POST, &path).await));
                }
                responses
            }
        }));
        let killing = async {
            for kills in 1..=5 {
                until(|| {
                    ready(&rig.gateway.status()).len() > 1 && notes::noted(&rig).len() > kills * 80
                })
                .await;
                let ready = ready(&rig.gateway.status());
                kill(ready[fastrand::usize(..ready.len())]);
            }
        };
        let (responses, ()) = tokio::join!(posting, killing);
        let mut refused = 0;
        for (name, response) in responses.into_iter().flatten() {
            let executed = times_noted(&rig, &format!("POST {name}"));
            if response.status() == StatusCode::OK {
                assert_eq!(executed, 1, "{name}");
                assert!(text(&response).starts_with(&format!("{name} ")));
            } else {
                assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
                assert!(executed <= 1, "{name}");
                refused += 1;
            }
        }
        assert!(refused < 100, "{refused} requests are lost with 5 workers");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn kills_under_load_cost_little_and_mix_nothing_up() {
    within(async {
        let app = "sub { [200, [], [qq{$_[0]{QUERY_STRING} } . 'x' x int rand 5_000]] }";
        let rig = Rig::with(app, |builder| builder.workers(4)).await;
        let load = Load::start(&rig, 8, "/x");
        let mut killed = Vec::new();
        for _ in 0..KILLS {
            load.responses(50).await;
            // One that was killed looks ready until that is noticed.
            let alive = || {
                let mut ready = ready(&rig.gateway.status());
                ready.retain(|pid| !killed.contains(pid));
                ready
            };
            until(|| alive().len() > 1).await;
            let alive = alive();
            let pid = alive[fastrand::usize(..alive.len())];
            kill(pid);
            killed.push(pid);
        }
        load.responses(50).await;
        let tally = load.end().await;
        tally.assert_only(&[StatusCode::OK, StatusCode::BAD_GATEWAY]);
        // For each loop, the one that the worker may have been at.
        assert!(
            tally.count(StatusCode::BAD_GATEWAY) <= 2 * KILLS,
            "{tally:?}"
        );
        rig.end().await;
    })
    .await;
}

/// Its child has its sockets, too, so they do not show its end.
#[tokio::test]
async fn a_worker_whose_child_lives_on_is_lost_all_the_same() {
    within(async {
        let rig = Rig::serve(
            r"
            use POSIX ();
            my $file = $0;
            sub {
                my $env = shift;
                return [200, [], ['well']] if $env->{PATH_INFO} ne '/lost';
                my $child = fork;
                if (!$child) {
                    select undef, undef, undef, 0.01 while -e $file;
                    POSIX::_exit(0);
                }
                kill 'KILL', $$;
                sleep 1 while 1;
            };
            ",
        )
        .await;
        assert_eq!(rig.get("/lost").await.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(text(&rig.get("/").await), "well");
        rig.end().await;
    })
    .await;
}
