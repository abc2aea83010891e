//! h2spec, strictly, over h2c with prior knowledge and over TLS.

mod outside;

use std::fs;
use std::time::Duration;

use outside::server::Server;
use outside::tools;

/// The suite took 5 s when this was written; a case that waits in vain takes 2 s.
const DEADLINE: Duration = Duration::from_mins(2);

/// The number of cases in version 2.2.1 with `--strict`.
const CASES: usize = 146;

/// A longer body than HTTP/2's first window of 65,535 bytes: its stream stays open until the case
/// has sent all its frames.
const DOWNLOAD: &str = "/bytes/100000";

/// A route that responds only after it has read a request's body to its end.
const UPLOAD: &str = "/upload";

/// The cases that send a sound head with POST, and its unsound rest afterwards. A server may
/// respond between the two, as `DOWNLOAD` does (405), so these count as they ended with `UPLOAD`.
const POSTING: [(&str, &str); 4] = [
    (
        "http2/8.1",
        "Sends a second HEADERS frame without the END_STREAM flag",
    ),
    (
        "http2/8.1.2.1",
        "Sends a HEADERS frame that contains a pseudo-header field as trailers",
    ),
    (
        "http2/8.1.2.6",
        "Sends a HEADERS frame with the \"content-length\" header field which does not equal the \
         DATA frame payload length",
    ),
    (
        "http2/8.1.2.6",
        "Sends a HEADERS frame with the \"content-length\" header field which does not equal the \
         sum of the multiple DATA frames payload length",
    ),
];

/// The cases that may fail, each with the reason why that is no fault of the server.
const EXPLAINED: [(&str, &str, &str); 1] = [(
    "http2/3.5",
    "Sends invalid connection preface",
    "The port speaks HTTP/1.1 too: what does not begin with the preface is a malformed request of \
     that version, gets 400 in it and is closed. h2spec reads the response as a frame.",
)];

#[derive(Debug)]
struct Case {
    section: String,
    description: String,
    failure: Option<String>,
}

#[test]
fn rfc_9113_h2spec_strict_fails_no_case_that_is_not_explained() {
    let mut server = Server::start();
    assert_sound(|path| run_suite(&server, path, &[]));
    server.assert_sound();
}

#[test]
fn rfc_9113_h2spec_strict_fails_no_other_case_over_tls() {
    let server = Server::with_flags(&["--tls-self-signed"]);
    assert_sound(|path| run_suite(&server, path, &["--tls", "--insecure"]));
}

fn assert_sound(run: impl Fn(&str) -> Vec<Case>) {
    let mut cases = run(DOWNLOAD);
    cases.retain(|case| !case.is_in(&POSTING));
    cases.extend(run(UPLOAD).into_iter().filter(|case| case.is_in(&POSTING)));

    assert_eq!(cases.len(), CASES, "each case counts once");
    let explained = EXPLAINED.map(|(section, description, _)| (section, description));
    let unexplained: Vec<&Case> = cases
        .iter()
        .filter(|case| case.failure.is_some() && !case.is_in(&explained))
        .collect();
    assert!(unexplained.is_empty(), "failed: {unexplained:#?}");
}

fn run_suite(server: &Server, path: &str, flags: &[&str]) -> Vec<Case> {
    let report = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    let address = server.address();
    let mut command = tools::bounded(tools::installed("bin/h2spec"), DEADLINE);
    command
        .arg("--strict")
        .args(["--host", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .args(flags)
        .args(["--path", path, "--junit-report"])
        .arg(report.path());
    // It fails when one of its cases does.
    let finished = tools::run(&mut command);
    let cases = parse(&fs::read_to_string(report.path()).expect("the report can be read"));
    assert_eq!(
        cases.len(),
        CASES,
        "cases run with {path}:\n{}{}",
        finished.stdout,
        finished.stderr
    );
    cases
}

impl Case {
    fn is_in(&self, cases: &[(&str, &str)]) -> bool {
        cases.contains(&(self.section.as_str(), self.description.as_str()))
    }
}

/// Reads h2spec's report, which has each `testcase` on lines of its own, with a skipped one as
/// `<skipped>` and a failed one as `<failure>` inside it.
fn parse(report: &str) -> Vec<Case> {
    report
        .split("<testcase ")
        .skip(1)
        .map(|text| {
            let (attributes, content) = text.split_once('>').expect("a tag ends");
            let content = content.split("</testcase>").next().unwrap_or_default();
            Case {
                section: attribute(attributes, "package"),
                description: attribute(attributes, "classname"),
                failure: (!content.trim().is_empty()).then(|| content.trim().to_owned()),
            }
        })
        .collect()
}

fn attribute(attributes: &str, name: &str) -> String {
    let start = format!("{name}=\"");
    let (_, rest) = attributes
        .split_once(&start)
        .unwrap_or_else(|| panic!("no attribute {name} in {attributes}"));
    let (value, _) = rest.split_once('"').expect("an attribute's value ends");
    value
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
