//! Tests in Perl: those of Plack for servers, and those of our Perl files.

use std::process::Command;

use crate::site::{Folder, repository};

#[test]
fn plack_suite() {
    let output = prove("crates/greenroom-psgi/perl/t/server.t");
    assert!(output.contains("Result: PASS"), "{output}");
}

#[test]
fn perl_tests() {
    let output = prove("crates/greenroom-psgi/perl/t");
    assert!(output.contains("Result: PASS"), "{output}");
}

/// Runs prove and returns its output; all tests must pass, and none be skipped.
fn prove(tests: &str) -> String {
    let library = repository("crates/greenroom-psgi/perl/lib");
    let folder = Folder::new();
    let mut prove = Command::new("prove");
    folder.confine(&mut prove);
    let output = prove
        .arg("-I")
        .arg(&library)
        .arg(repository(tests))
        .env("PERL5LIB", &library)
        .env("GREENROOM", env!("CARGO_BIN_EXE_greenroom"))
        .output()
        .expect("Perl is installed; else run `cargo xtask tools`");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("skipped"), "{text}");
    folder.assert_left_alone();
    text
}
