//! h2spec, strictly, over h2c with prior knowledge.

mod outside;

use std::fs;
use std::path::Path;
use std::time::Duration;

use outside::server::Server;
use outside::tools;

/// The suite took 5 s when this was written; a case that waits in vain takes 2 s.
const DEADLINE: Duration = Duration::from_secs(120);

/// How many cases version 2.2.1 has with `--strict`.
const CASES: usize = 146;

/// Answered with a body of several frames' worth of flow control.
const PATH: &str = "/bytes/8192";

/// What may fail, and why that is no fault of the server.
const EXPLAINED: [(&str, &str, &str); 0] = [];

#[derive(Debug)]
struct Case {
    section: String,
    description: String,
    failure: Option<String>,
}

#[test]
fn rfc_9113_h2spec_strict_fails_no_case_that_is_not_explained() {
    let mut server = Server::start();
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let report = directory.path().join("report.xml");
    run_suite(&server, &report);
    let cases = parse(&fs::read_to_string(report).expect("h2spec writes a report"));

    assert_eq!(cases.len(), CASES, "cases run");
    let unexplained: Vec<&Case> = cases.iter().filter(|case| !case.is_accepted()).collect();
    assert!(unexplained.is_empty(), "failed: {unexplained:#?}");
    server.assert_sound();
}

fn run_suite(server: &Server, report: &Path) {
    let address = server.address();
    let mut command = tools::bounded(tools::installed("bin/h2spec"), DEADLINE);
    command
        .arg("--strict")
        .args(["--host", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .args(["--path", PATH, "--junit-report"])
        .arg(report);
    let finished = tools::run(&mut command);
    assert!(
        report.exists(),
        "h2spec wrote no report:\n{}{}",
        finished.stdout,
        finished.stderr
    );
}

impl Case {
    fn is_accepted(&self) -> bool {
        let is_explained = || {
            EXPLAINED.iter().any(|(section, description, _)| {
                *section == self.section && *description == self.description
            })
        };
        self.failure.is_none() || is_explained()
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
