//! The messages when an application cannot be started.

use std::net::TcpListener;

use crate::site::{Folder, until};

const GOOD: &str = "sub { [200, [], ['good']] };";

/// Returns the message with which the program ends, with status 2 and before it listens.
fn refused(folder: &Folder, name: &str, flags: &[&str]) -> String {
    let mut serve = folder.serve(&folder.path(name), flags);
    let output = serve.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.matches("error: ").count(), 1, "{message}");
    assert!(!message.contains("listening"), "{message}");
    until("processes are left", || folder.processes().is_empty());
    folder.assert_left_alone();
    message
}

#[test]
fn what_is_wrong_with_an_application_is_said_once_and_in_perls_words() {
    let cases = [
        ("use strict;\nmy $x = ;\n", "app.psgi line 2"),
        ("use strict;\n$undeclared = 1;\n", "$undeclared"),
        ("use strict; 1;", "not a code reference"),
        ("die \"no database\\n\";", "no database"),
        (
            "use No::Such::Module; sub { };",
            "Can't locate No/Such/Module.pm",
        ),
        ("exit 3;", "exit status: 3"),
    ];
    for (source, said) in cases {
        let folder = Folder::with(source);
        for flags in [&[][..], &["--preload"]] {
            let message = refused(&folder, "app/app.psgi", flags);
            assert!(message.contains(said), "{source} {flags:?}: {message}");
            assert!(message.contains("app.psgi"), "{message}");
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    let folder = Folder::with(GOOD);
    let cases: [(&str, &[&str], &str); 4] = [
        ("app/missing.psgi", &[], "app/missing.psgi"),
        ("app", &[], "directory"),
        (
            "app/app.psgi",
            &["--perl", "/nowhere/perl"],
            "/nowhere/perl",
        ),
        ("app/app.psgi", &["-M", "No::Such"], "No/Such.pm"),
    ];
    for (name, flags, said) in cases {
        let message = refused(&folder, name, flags);
        assert!(message.contains(said), "{name} {flags:?}: {message}");
    }
}

#[test]
fn a_taken_address_is_said_before_perl_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::with("open my $f, '>', 'loaded'; sub { [200, [], []] };");
    let message = refused(&folder, "app/app.psgi", &["-l", &address]);
    assert!(message.contains(&address), "{message}");
    assert!(!folder.path("loaded").exists());
}
