//! SIGTERM while a request is under way.

use rustix::process::Signal;

use crate::http;
use crate::site::{Site, until};

/// Makes a file as it begins, and is done when there is the file `go`.
const BLOCKING: &str = "sub {
    open my $begun, '>', 'begun';
    select undef, undef, undef, 0.01 until -e 'go';
    [200, [], ['done']];
};";

/// Does the same in an event loop.
const DRIVEN: &str = "use AnyEvent; sub { sub {
    my ($respond) = @_;
    open my $begun, '>', 'begun';
    my $look;
    $look = AnyEvent->timer(after => 0, interval => 0.01, cb => sub {
        return if !-e 'go';
        undef $look;
        $respond->([200, [], ['done']]);
    });
} };";

#[test]
fn a_request_under_way_is_finished() {
    for source in [BLOCKING, DRIVEN] {
        let mut site = Site::serve(source, &["--workers", "1"]);
        let asked = http::begin(site.address(), "GET", "/", &[], b"");
        site.folder.await_file("begun");
        site.server.signal(Signal::TERM);
        site.server.wait_for_log("draining");
        site.folder.write("go", "");
        let response = http::finish(asked);
        assert_eq!((response.status, &*response.text()), (200, "done"));
        assert_eq!(site.server.wait().code(), Some(0));
        site.folder.assert_left_alone();
    }
}

/// A signal that a terminal sends reaches all processes of its group.
#[test]
fn workers_leave_a_terminals_interrupt_to_the_program() {
    let mut site = Site::serve(BLOCKING, &["--workers", "1"]);
    let asked = http::begin(site.address(), "GET", "/", &[], b"");
    site.folder.await_file("begun");
    for pid in site.folder.processes() {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.unwrap(), Signal::INT).unwrap();
    }
    site.server.wait_for_log("draining");
    site.folder.write("go", "");
    assert_eq!(http::finish(asked).text(), "done");
    assert_eq!(site.server.wait().code(), Some(0));
    site.folder.assert_left_alone();
}

/// Its client has gone, so that only the worker is waited for.
#[test]
fn a_worker_that_does_not_end_is_killed_at_the_deadline_and_told_of() {
    let flags = ["--workers", "1", "--drain-deadline", "200ms"];
    let mut site = Site::serve(BLOCKING, &flags);
    drop(http::begin(site.address(), "GET", "/", &[], b""));
    site.folder.await_file("begun");
    site.server.signal(Signal::TERM);
    let line = site.server.wait_for_log("killed");
    assert!(line.contains("WARN"), "{line}");
    assert_eq!(site.server.wait().code(), Some(1));
    site.folder.assert_left_alone();
}

#[test]
fn a_request_that_is_not_done_is_aborted_at_the_deadline() {
    let flags = ["--workers", "1", "--drain-deadline", "200ms"];
    for source in [BLOCKING, DRIVEN] {
        let mut site = Site::serve(source, &flags);
        let asked = http::begin(site.address(), "GET", "/", &[], b"");
        site.folder.await_file("begun");
        site.end(1);
        drop(asked);
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut site = Site::serve(BLOCKING, &["--workers", "1", "--drain-deadline", "1h"]);
    let _asked = http::begin(site.address(), "GET", "/", &[], b"");
    site.folder.await_file("begun");
    site.server.signal(Signal::TERM);
    site.server.wait_for_log("draining");
    site.server.signal(Signal::TERM);
    assert_eq!(site.server.wait().code(), Some(1));
    until("workers are left", || site.folder.processes().is_empty());
}
