//! The log and the status, for operators.

use std::time::Duration;

use greenroom_psgi::WorkerStatus;
use http::StatusCode;
use tokio::time::sleep;

use crate::log;
use crate::rig::{Rig, within};

fn worker(rig: &Rig) -> WorkerStatus {
    rig.gateway.status().workers[0].clone()
}

/// Its connections end long before it does, as those of a process with much memory.
const SLOW_TO_END: &str = r"
    use POSIX ();
    sub {
        POSIX::close($_) for 3 .. 63;
        select undef, undef, undef, 1.5;
        POSIX::_exit(3);
    };
";

#[tokio::test]
async fn a_workers_exit_status_is_its_own_however_long_it_takes_to_end() {
    log::keep();
    within(async {
        let rig = Rig::serve(SLOW_TO_END).await;
        let process = format!("(process {})", worker(&rig).pid);
        assert_eq!(rig.get("/").await.status(), StatusCode::BAD_GATEWAY);
        let line = log::line(&process, " ended unasked ").await;
        let app = format!("application=\"{}\"", rig.source.app().display());
        assert!(
            line.contains("(exit status: 3)") && line.contains(&app),
            "{line}"
        );
        let line = log::line("its worker ended before it responded", &app).await;
        for part in [" ERROR psgi: ", " worker=1 pid=", " route=\"GET /\""] {
            assert!(line.contains(part), "{part}: {line}");
        }
        rig.end().await;
    })
    .await;
}

const GOOD: &str = "sub { [200, [], ['good']] };";

#[tokio::test]
async fn a_worker_that_is_too_large_from_the_start_is_told_of_and_left_alone() {
    log::keep();
    within(async {
        let rig = Rig::with(GOOD, |builder| builder.max_rss(1_000_000)).await;
        let before = worker(&rig);
        let process = format!("(process {})", before.pid);
        let line = log::line(&process, "before its first request").await;
        assert!(line.contains(" WARN psgi: "), "{line}");
        let (_, baseline) = line.split_once(" held ").expect("it is told");
        let baseline: u64 = baseline.split(' ').next().unwrap().parse().unwrap();
        assert!(baseline > 1_000_000, "{line}");
        // Memory is looked at each second.
        while worker(&rig).age_seconds < 4 {
            sleep(Duration::from_millis(50)).await;
        }
        let status = rig.gateway.status();
        // On a machine that was busy meanwhile it may be old enough to be replaced all the same.
        if status.workers[0].age_seconds < 9 {
            assert_eq!(status.retired, 0, "{status:#?}");
            assert_eq!(status.workers[0].pid, before.pid);
        }
        rig.end().await;
    })
    .await;
}

const GROWS: &str =
    "my ($ballast, $bytes) = ('', 2e8); sub { $ballast = 'x' x $bytes; [200, [], ['grown']] };";

#[tokio::test]
async fn a_worker_that_has_grown_is_replaced_by_one_that_is_ready_first() {
    within(async {
        let rig = Rig::with(GROWS, |builder| builder.max_rss(100_000_000)).await;
        let before = worker(&rig);
        assert_eq!(rig.get("/").await.status(), StatusCode::OK);
        loop {
            let status = rig.gateway.status();
            assert!(!status.workers.is_empty(), "somebody serves all the time");
            let is_new = |worker: &WorkerStatus| worker.pid != before.pid;
            if status.workers.iter().all(is_new) {
                assert!(status.workers[0].rss_bytes < 100_000_000, "{status:#?}");
                assert_eq!((status.retired, status.restarts), (1, 0));
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        rig.end().await;
    })
    .await;
}

const GROWS_A_LITTLE: &str =
    "my ($ballast, $bytes) = ('', 6e7); sub { $ballast = 'x' x $bytes; [200, [], ['grown']] };";

/// It grows a little beyond the limit with its first request, and no further.
#[tokio::test]
async fn a_limit_just_above_a_fresh_worker_is_told_of_and_does_not_churn() {
    log::keep();
    within(async {
        let rig = Rig::with(GROWS_A_LITTLE, |builder| builder.max_rss(50_000_000)).await;
        let first = worker(&rig).pid;
        // It is replaced, and then the log warns of another that is not.
        let line = loop {
            assert_eq!(rig.get("/").await.status(), StatusCode::OK);
            let process = format!("(process {}), which held ", worker(&rig).pid);
            let written = log::written();
            if let Some(line) = written.lines().find(|line| line.contains(&process)) {
                break line.to_owned();
            }
            sleep(Duration::from_millis(50)).await;
        };
        assert!(line.contains(" WARN psgi: "), "{line}");
        assert!(line.contains("is 50000000 bytes"), "{line}");
        assert!(line.contains("before its first request"), "{line}");
        assert!(line.contains("set it well above "), "{line}");
        let (young, old) = (Duration::from_secs(4), Duration::from_secs(50));
        let told = worker(&rig);
        assert_ne!(told.pid, first);
        while worker(&rig).age_seconds < told.age_seconds + young.as_secs() {
            assert_eq!(rig.get("/").await.status(), StatusCode::OK);
            sleep(Duration::from_millis(50)).await;
        }
        let status = rig.gateway.status();
        // On a machine that was busy meanwhile it may be old enough to be replaced all the same.
        if status.workers[0].age_seconds < old.as_secs() {
            assert_eq!((status.retired, status.restarts), (1, 0), "{status:#?}");
            assert_eq!(status.workers[0].pid, told.pid);
        }
        rig.end().await;
    })
    .await;
}

const DYING: &str = r#"
    sub {
        my $env = shift;
        $env->{'psgi.errors'}->print("printed before the error\n");
        die "first line\n2026-01-01T00:00:00Z ERROR psgi: forged\n"
            if $env->{PATH_INFO} eq '/two-lines';
        die 'x' x 100_000, "\n" if $env->{PATH_INFO} eq '/endless-error';
        sub { my $respond = shift; die "later, too\n" };
    };
"#;

#[tokio::test]
async fn an_error_of_the_application_is_an_error_in_the_log() {
    log::keep();
    within(async {
        let rig = Rig::serve(DYING).await;
        let worker = worker(&rig);
        let of_worker = format!("worker={} pid={} ", worker.key, worker.pid);
        let app = rig.source.app().display().to_string();
        for (path, said) in [
            ("/two-lines", "first line"),
            ("/endless-error", "[and 91808 bytes more]"),
            ("/later-error", "later, too"),
        ] {
            let response = rig.get(&format!("{path}?secret=1")).await;
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let line = log::line(said, "").await;
            assert!(line.contains(" ERROR psgi: "), "{line}");
            let entry = log::entry(said).await;
            for part in [&*app, &of_worker, &format!("route=\"GET {path}\"")] {
                assert!(entry.contains(part), "{part}: {entry}");
            }
            assert!(!entry.contains("secret"), "{entry}");
        }
        let forged = log::line("forged", "").await;
        assert!(forged.starts_with("    "), "{forged}");
        let printed = log::line("printed before the error", &app).await;
        assert!(printed.contains(" INFO psgi: "), "{printed}");
        rig.end().await;
    })
    .await;
}

/// Responds when the file `go` is there.
pub(crate) const WAITS: &str = r#"
    my ($folder) = __FILE__ =~ m{(.*)/};
    sub { select undef, undef, undef, 0.01 until -e "$folder/go"; [200, [], ['done']] };
"#;

#[tokio::test]
async fn refusals_are_in_the_log_with_their_number_and_what_to_raise() {
    log::keep();
    within(async {
        let rig = Rig::with(WAITS, |builder| builder.queue_max(2)).await;
        let asked = futures_util::future::join_all((0..5).map(|_| rig.get("/")));
        let told = async {
            let app = rig.source.app().display().to_string();
            let line = log::line("requests were refused with 503", &app).await;
            rig.source.write("go", "");
            line
        };
        let (responses, line) = tokio::join!(asked, told);
        assert!(line.contains(" WARN psgi: "), "{line}");
        assert!(
            line.contains("queue_max (--worker-queue-max), which is 2"),
            "{line}"
        );
        assert!(
            line.contains(" count=") && line.contains(" predicted_wait="),
            "{line}"
        );
        let refused = |status| status == StatusCode::SERVICE_UNAVAILABLE;
        let refused = responses
            .iter()
            .filter(|response| refused(response.status()));
        let refused = refused.count();
        assert_eq!(rig.gateway.status().queue.sheds.total(), refused as u64);
        assert!(refused >= 1, "{responses:#?}");
        rig.end().await;
    })
    .await;
}
