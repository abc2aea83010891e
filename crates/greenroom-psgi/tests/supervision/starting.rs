use std::time::Duration;

use greenroom_psgi::WorkerState;

use crate::rig::{
    Folder, GOOD, are_ready, eventually, failure, is_running, parent, serving, until,
};

/// Notes each process that loads it.
const NOTED: &str = "open my $out, '>>', qq{$folder/loads}; print {$out} qq{$$\\n}; close $out;";

#[tokio::test]
async fn workers_are_ready_soon_after_the_start() {
    let folder = Folder::with(GOOD);
    let gateway = folder.builder().workers(3).start().await;
    let gateway = gateway.expect("the application can be loaded");
    let status = until(&gateway, |status| are_ready(status, 3)).await;
    assert_eq!((status.generation, status.workers_wanted), (1, 3));
    for worker in &status.workers {
        assert_eq!(worker.mode, "blocking");
        assert!(worker.rss_bytes > 1_000_000, "{worker:#?}");
        assert!(is_running(worker.pid));
    }
    let all = greenroom_psgi::status();
    assert!(
        all.iter()
            .any(|other| other.application == status.application)
    );
    gateway.shutdown().await;
}

/// Makes one of the processes that load it ready at once, and the others when there is the file
/// `go`, or lets them die if there is the file `doomed`.
const ONE_IS_QUICK: &str = "if (!mkdir qq{$folder/first}) { \
     select undef, undef, undef, 0.01 until -e qq{$folder/go}; \
     die qq{doomed\\n} if unlink qq{$folder/doomed}; }";

#[tokio::test]
async fn the_first_worker_that_is_ready_serves_while_the_others_load() {
    let folder = Folder::with(&format!("{ONE_IS_QUICK} {GOOD}"));
    let gateway = folder.builder().workers(3).start().await;
    let gateway = gateway.expect("the first worker is ready");
    assert_eq!(serving(&gateway.status()).len(), 1);
    // One that cannot be loaded is tried again.
    folder.write("doomed", "");
    folder.write("go", "");
    let status = until(&gateway, |status| are_ready(status, 3)).await;
    assert_eq!((status.restarts, status.generation), (1, 1));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_workers_that_load() {
    let folder = Folder::with(&format!("{ONE_IS_QUICK} {GOOD}"));
    let gateway = folder.builder().workers(3).start().await;
    let gateway = gateway.expect("the first worker is ready");
    assert!(gateway.shutdown().await.killed.is_empty());
    assert!(gateway.status().workers.is_empty());
}

#[tokio::test]
async fn an_event_loop_that_the_application_loads_is_found() {
    let folder = Folder::with("use AnyEvent; sub { [200, [], []] }");
    let gateway = folder.start().await;
    let mode = gateway.status().workers[0].mode.clone();
    assert!(["EV", "AnyEvent"].contains(&mode.as_str()), "{mode}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn each_worker_loads_the_application_unless_it_is_preloaded() {
    for (preload, loads) in [(false, 2), (true, 1)] {
        let folder = Folder::with(&format!("{NOTED} {GOOD}"));
        let gateway = folder.builder().workers(2).preload(preload).start().await;
        let gateway = gateway.expect("the application can be loaded");
        until(&gateway, |status| are_ready(status, 2)).await;
        assert_eq!(folder.read("loads").lines().count(), loads);
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn modules_includes_and_the_environment_are_there_before_the_application() {
    let folder = Folder::with(
        "die qq{not so\\n} if !$Marker::Loaded || $ENV{PLACK_ENV} ne 'staging'; \
         sub { [200, [], []] }",
    );
    folder.write("lib/Marker.pm", "package Marker; our $Loaded = 1; 1;");
    let builder = folder
        .builder()
        .include(folder.path("lib"))
        .module("Marker");
    let gateway = builder.environment("staging").start().await;
    gateway.expect("all is there").shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_loaded_is_told_in_perls_words() {
    let cases = [
        ("sub { [200, [], ['x'] }", "syntax error at "),
        ("'app'", "not a code reference"),
        ("die qq{no database\\n}; sub {}", "no database"),
        (
            "use No::Such::Module; sub {}",
            "Can't locate No/Such/Module.pm in @INC",
        ),
        ("exit 3; sub {}", "a worker of "),
        ("exit 3; sub {}", "(exit status: 3)"),
        ("kill 'KILL', $$; sub {}", "(signal: 9 (SIGKILL))"),
    ];
    for (application, message) in cases {
        let failure = Folder::with(application).failure().await;
        assert!(failure.contains("app.psgi"), "{failure}");
        assert!(failure.contains(message), "{message}: {failure}");
    }
}

#[tokio::test]
async fn what_cannot_be_preloaded_is_told_in_perls_words() {
    let cases = [
        ("sub { [200, [], ['x'] }", "syntax error at "),
        ("exit 3; sub {}", "the zygote of "),
        (
            "print STDERR qq{out of luck\\n}; exit 3; sub {}",
            "(exit status: 3):\nout of luck",
        ),
    ];
    for (application, message) in cases {
        let failure = failure(Folder::with(application).builder().preload(true)).await;
        assert!(failure.contains(message), "{message}: {failure}");
    }
}

#[tokio::test]
async fn a_missing_module_is_told_of() {
    let failure = failure(Folder::with(GOOD).builder().module("No::Such")).await;
    assert!(
        failure.contains("Can't locate No/Such.pm in @INC"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_missing_file_and_a_directory_are_told_of() {
    let folder = Folder::with(GOOD);
    for (file, message) in [
        ("none.psgi", "No such file or directory"),
        (".", "is a directory"),
    ] {
        let builder = greenroom_psgi::Gateway::builder(folder.path(file));
        let failure = failure(builder).await;
        assert!(failure.contains(message), "{failure}");
        assert!(
            failure.contains(&folder.path(file).display().to_string()),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn a_missing_perl_is_told_of_with_what_to_do() {
    for perl in ["no-such-perl", "/no/such/perl"] {
        let failure = failure(Folder::with(GOOD).builder().perl(perl)).await;
        let expected = format!(
            "no perl: tried `{perl}`; install Debian's package perl, or name another one by --perl"
        );
        assert_eq!(failure, expected);
    }
}

#[tokio::test]
async fn an_application_that_does_not_come_up_is_given_up_and_killed() {
    for preload in [false, true] {
        let folder = Folder::with(&format!("{NOTED} sleep 1000; {GOOD}"));
        let limit = Duration::from_secs(1);
        let builder = folder.builder().preload(preload).start_timeout(limit);
        let failure = failure(builder).await;
        assert!(
            failure.ends_with("was not ready within 1s (start_timeout)"),
            "{failure}"
        );
        for pid in folder.read("loads").lines() {
            let pid = pid.parse().expect("it is a number");
            eventually("the process is gone", || !is_running(pid)).await;
        }
    }
}

#[tokio::test]
async fn of_workers_that_cannot_be_loaded_nothing_is_left() {
    let folder = Folder::with(&format!("{NOTED} die qq{{bad luck\\n}};"));
    let failure = failure(folder.builder().workers(8)).await;
    assert!(failure.contains("bad luck"), "{failure}");
    let loads = folder.read("loads");
    assert!(!loads.is_empty());
    for pid in loads.lines() {
        let pid = pid.parse().expect("it is a number");
        eventually("the process is gone", || !is_running(pid)).await;
    }
}

#[tokio::test]
async fn workers_are_in_a_process_group_of_their_own() {
    let folder = Folder::with(GOOD);
    let gateway = folder.start().await;
    let pid = gateway.status().workers[0].pid;
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(pid));
    let group = group.expect("the process exists").as_raw_nonzero().get();
    assert_eq!(group, parent(pid));
    assert_eq!(gateway.status().workers[0].state, WorkerState::Ready);
    gateway.shutdown().await;
}
