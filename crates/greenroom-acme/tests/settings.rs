//! Settings that are refused, and why.

use std::path::Path;
use std::time::Duration;

use greenroom_acme::{Acme, AcmeBuilder, BuildError, Limits, NAMES_MAX, State};
use rcgen::{CertificateParams, KeyPair};

fn builder(storage: &Path) -> AcmeBuilder {
    Acme::builder(storage)
        .agree_to_terms_of_service()
        .roots(root())
        .certificate(["example.org"])
}

fn root() -> String {
    let params = CertificateParams::new(vec!["root.example".to_owned()]).expect("a name");
    let key = KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("it signs itself").pem()
}

fn refused(change: impl FnOnce(AcmeBuilder) -> AcmeBuilder) -> String {
    let storage = tempfile::tempdir().expect("a directory");
    let built = change(builder(storage.path())).build();
    let error = built.expect_err("it is refused");
    let is_empty = std::fs::read_dir(storage.path())
        .expect("a directory")
        .next()
        .is_none();
    assert!(
        is_empty,
        "nothing is written before all is known to be right"
    );
    error.to_string()
}

#[test]
fn the_terms_must_be_agreed_to() {
    let storage = tempfile::tempdir().expect("a directory");
    let built = Acme::builder(storage.path())
        .certificate(["example.org"])
        .build();
    assert!(matches!(built, Err(BuildError::TermsNotAgreed)));
}

#[test]
fn names_must_be_names_of_hosts_and_each_in_one_certificate() {
    for (name, reason) in [
        ("*.example.org", "wildcards need the challenge DNS-01"),
        ("192.0.2.1", "it is an address"),
        ("bücher.example", "Punycode"),
        ("a b.example", "no name of a host"),
    ] {
        let error = refused(|builder| builder.certificate([name]));
        assert!(error.contains(name) && error.contains(reason), "{error}");
    }
    let error = refused(|builder| builder.certificate(["www.example.org", "Example.ORG"]));
    assert_eq!(error, "example.org is in two certificates, or twice in one");
    let error = refused(|builder| builder.certificate(Vec::<String>::new()));
    assert!(error.contains("1 to 100 names, not 0"), "{error}");
    let many = (0..=NAMES_MAX).map(|number| format!("{number}.example"));
    let error = refused(|builder| builder.certificate(many));
    assert!(error.contains("1 to 100 names, not 101"), "{error}");
}

#[test]
fn what_else_is_wrong_is_named() {
    let limits = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        refused(|builder| builder.limits(limits))
    };
    for (error, reason) in [
        (
            refused(|builder| builder.contact("ada")),
            "\"ada\" is no address of mail",
        ),
        (
            refused(|builder| builder.contact("a@b@[::1]")),
            "no address of mail",
        ),
        (
            refused(|builder| builder.challenges([])),
            "no kind of challenge",
        ),
        (
            refused(|builder| builder.directory_url("http://ca.example/dir")),
            "https://",
        ),
        (
            refused(|builder| builder.directory_url("ca.example")),
            "https://",
        ),
        (
            refused(|builder| builder.external_account("id", "not base64!")),
            "base64url",
        ),
        (refused(|builder| builder.roots("nothing")), "there is none"),
        (
            limits(|limits| limits.request_timeout = Duration::ZERO),
            "request_timeout",
        ),
        (
            limits(|limits| limits.order_timeout = Duration::ZERO),
            "order_timeout",
        ),
        (
            limits(|limits| limits.retry_min = Duration::ZERO),
            "retry_min",
        ),
        (
            limits(|limits| limits.retry_max = Duration::from_secs(1)),
            "retry_max",
        ),
        (limits(|limits| limits.orders_max = 0), "orders_max"),
    ] {
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_storage_that_cannot_be_made_is_named() {
    let storage = tempfile::NamedTempFile::new().expect("a file");
    let path = storage.path().join("below");
    let error = builder(&path).build().expect_err("a file is no directory");
    let error = error.to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

#[test]
fn names_are_set_later_as_a_whole_or_not_at_all() {
    let storage = tempfile::tempdir().expect("a directory");
    let acme = builder(storage.path()).build().expect("it is complete");
    let (handle, status) = (acme.handle(), acme.status());
    let names = || {
        let groups = status.borrow().groups.clone().into_iter();
        groups.map(|group| group.names).collect::<Vec<_>>()
    };
    let set = handle.set_certificates([vec!["b.example"], vec!["Example.org"]]);
    set.expect("they are names");
    assert_eq!(names(), [["b.example"], ["example.org"]]);
    let error = handle.set_certificates([["c.example"], ["*.example"]]);
    assert!(matches!(error, Err(BuildError::Name { .. })), "{error:?}");
    assert_eq!(names(), [["b.example"], ["example.org"]]);
    let none: [[&str; 1]; 0] = [];
    handle.set_certificates(none).expect("none are allowed");
    assert!(names().is_empty());
}

#[test]
fn nothing_is_ordered_before_it_runs() {
    let storage = tempfile::tempdir().expect("a directory");
    let acme = builder(storage.path())
        .external_account("id", "c2VjcmV0LWtleQ==")
        .contact("ada+tls@example.org")
        .build()
        .expect("it is complete");
    let status = acme.status().borrow().clone();
    assert_eq!(status.directory_url, greenroom_acme::LETS_ENCRYPT);
    assert_eq!(status.groups[0].names, ["example.org"]);
    assert_eq!(status.groups[0].state, State::Starting);
    assert_eq!(status.groups[0].certificate, None);
}
