//! The names of metrics, in the code and in expressions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use greenroom::{METRICS, MetricKind};

/// Returns the root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of a file for operators.
pub(crate) fn packaged(name: &str) -> PathBuf {
    root().join("packaging/observability").join(name)
}

/// Returns the metrics that a text of `PromQL` names, as the catalog names them.
pub(crate) fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    let prefixes = ["greenroom_", "http_server_", "process_"];
    let names = words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
    names.map(catalogued).collect()
}

/// Returns the name of the histogram that this is a series of, or the name itself.
fn catalogued(name: &str) -> String {
    let stems = ["_bucket", "_sum", "_count"].map(|suffix| name.strip_suffix(suffix));
    let mut stems = stems.into_iter().flatten();
    let histogram = stems.find(|stem| {
        let is_it = |metric: &&greenroom::Metric| metric.name == *stem;
        METRICS.iter().find(is_it).map(|metric| metric.kind) == Some(MetricKind::Histogram)
    });
    histogram.unwrap_or(name).to_owned()
}

/// Returns the text literals of the code of this directory that name metrics, as they are shown.
fn in_code(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            in_code(&path, names);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("catalog.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let literals = text.split('"');
            let is_name = |word: &&str| {
                let mut parts = word.split('_');
                let areas = [
                    "loop", "route", "stage", "psgi", "proxy", "actor", "bus", "cluster", "trace",
                    "tls", "upgrades", "quic", "log",
                ];
                parts.next() == Some("greenroom")
                    && parts.next().is_some_and(|area| areas.contains(&area))
                    && parts.next().is_some()
                    && word
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            let shown = |name: &str| name.replace("_microseconds_total", "_seconds_total");
            names.extend(literals.filter(is_name).map(shown));
        }
    }
}

#[test]
fn the_catalog_has_the_metrics_of_the_code_and_no_others() {
    let mut in_crates = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        in_code(&entry.unwrap().path().join("src"), &mut in_crates);
    }
    let catalog = METRICS.iter().map(|metric| metric.name.to_owned());
    let catalog: BTreeSet<_> = catalog
        .filter(|name| name.starts_with("greenroom_"))
        .collect();
    assert_eq!(in_crates, catalog);
}

#[test]
fn the_pages_name_no_metric_that_is_not_there() {
    let catalog: BTreeSet<_> = METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    let pages = fs::read_dir(root().join("docs")).unwrap();
    for path in pages.map(|entry| entry.unwrap().path()) {
        let Ok(page) = fs::read_to_string(&path) else {
            continue;
        };
        let suffixes = ["_total", "_seconds", "_bytes", "_length"];
        for name in named(&page) {
            if suffixes.iter().any(|suffix| name.ends_with(suffix)) {
                assert!(catalog.contains(&name), "{}: {name}", path.display());
            }
        }
    }
}
