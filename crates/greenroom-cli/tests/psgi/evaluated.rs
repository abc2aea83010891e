//! `-e`, as in plackup.

use std::process::Command;

use rustix::process::Signal;

use crate::http;
use crate::program::{Running, command};
use crate::site::Folder;

fn evaluate(folder: &Folder, code: &str, flags: &[&str]) -> Command {
    let mut serve = command(&["serve", "-p", "0", "--workers", "1", "-e", code]);
    serve.args(flags);
    folder.confine(&mut serve);
    serve
}

#[test]
fn code_is_an_application_or_wraps_one_and_sees_what_modules_export() {
    let folder = Folder::with("sub { [200, [], ['wrapped']] };");
    let cases: [(&str, &[&str], &str); 4] = [
        ("sub { [200, [], ['alone']] } # it is", &[], "alone"),
        ("sub { [200, [], [$0 =~ /psgi/]] }", &[], "1"),
        ("sub { [200, [], [sum(1, 2)]] }", &["-MList::Util=sum"], "3"),
        (
            "enable sub { my $app = shift; \
             sub { my $r = $app->(@_); unshift @{$r->[2]}, 'is '; $r } };",
            &["app/app.psgi"],
            "is wrapped",
        ),
    ];
    for (code, flags, said) in cases {
        for more in [&[][..], &["--preload"]] {
            let flags = [flags, more].concat();
            let mut server = Running::start(&mut evaluate(&folder, code, &flags));
            assert_eq!(http::get(&server.address, "/").text(), said, "{code}");
            server.signal(Signal::HUP);
            server.wait_for_log("is loaded anew");
            assert_eq!(http::get(&server.address, "/").text(), said, "{code}");
            server.signal(Signal::TERM);
            assert_eq!(server.wait().code(), Some(0));
            folder.assert_left_alone();
        }
    }
}

#[test]
fn what_is_wrong_with_code_is_said_by_its_line() {
    let folder = Folder::new();
    let cases = [
        ("my $x = \n;\nsub {", "-e line"),
        ("'text'", "not a code reference"),
    ];
    for (code, said) in cases {
        let output = evaluate(&folder, code, &[]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(said), "{message}");
        folder.assert_left_alone();
    }
}

#[test]
fn a_wrapped_application_is_loaded_anew_when_it_changes() {
    let folder = Folder::with("sub { [200, [], ['first']] };");
    let flags = ["--reload", "app/app.psgi"];
    let server = Running::start(&mut evaluate(&folder, "enable sub { $_[0] };", &flags));
    assert_eq!(http::get(&server.address, "/").text(), "first");
    folder.write("app/app.psgi", "sub { [200, [], ['second']] };");
    server.wait_for_log("is loaded anew");
    assert_eq!(http::get(&server.address, "/").text(), "second");
}
