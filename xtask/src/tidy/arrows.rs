//! Dependencies between crates point one way, and some crates do without whole kinds of crates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cargo_metadata::DependencyKind;

use super::Finding;
use super::workspace::{Dependency, Links, Package};

/// Each crate of the workspace with those that it may depend on, tests included.
const ARROWS: &[(&str, &[&str])] = &[
    ("greenroom-http", &[]),
    ("greenroom-quantiles", &[]),
    ("greenroom-settings", &[]),
    ("greenroom-timing", &[]),
    (
        "greenroom-server",
        &[
            "greenroom-http",
            "greenroom-quantiles",
            "greenroom-settings",
            "greenroom-timing",
        ],
    ),
    (
        "greenroom",
        &[
            "greenroom-actor",
            "greenroom-bus",
            "greenroom-cluster",
            "greenroom-http",
            "greenroom-proxy",
            "greenroom-psgi",
            "greenroom-server",
            "greenroom-stage",
        ],
    ),
    ("greenroom-acme", &[]),
    (
        "greenroom-actor",
        &[
            "greenroom-actor-macros",
            "greenroom-stage",
            "greenroom-timing",
        ],
    ),
    // Its tests use what it generates.
    ("greenroom-actor-macros", &["greenroom-actor"]),
    (
        "greenroom-bus",
        &["greenroom-actor", "greenroom-test-servers"],
    ),
    (
        "greenroom-cluster",
        &["greenroom-actor", "greenroom-test-servers"],
    ),
    ("greenroom-load", &[]),
    (
        "greenroom-proxy",
        &["greenroom-server", "greenroom-stage", "greenroom-timing"],
    ),
    (
        "greenroom-psgi",
        &[
            "greenroom-quantiles",
            "greenroom-server",
            "greenroom-settings",
            "greenroom-stage",
            "greenroom-timing",
        ],
    ),
    (
        "greenroom-stage",
        &[
            "greenroom-quantiles",
            "greenroom-settings",
            "greenroom-timing",
        ],
    ),
    (
        "greenroom-cli",
        &[
            "greenroom",
            "greenroom-acme",
            "greenroom-load",
            "greenroom-sites",
        ],
    ),
    (
        "greenroom-sites",
        &["greenroom", "greenroom-stage", "greenroom-timing"],
    ),
    ("greenroom-compat", &["greenroom"]),
    (
        "greenroom-examples",
        &[
            "greenroom",
            "greenroom-actor",
            "greenroom-stage",
            "greenroom-test-servers",
        ],
    ),
    (
        "greenroom-renamed",
        &["greenroom", "greenroom-actor", "greenroom-cluster"],
    ),
    ("greenroom-test-servers", &[]),
    ("social", &["greenroom", "greenroom-test-servers"]),
    ("xtask", &[]),
];

/// Crates that must work under any runtime and without one: they may not reach these, even
/// through others.
const WITHOUT_RUNTIME: &[&str] = &["greenroom-http"];
const RUNTIMES: &[&str] = &[
    "async-io",
    "async-std",
    "compio",
    "glommio",
    "hyper",
    "mio",
    "monoio",
    "polling",
    "smol",
    "tokio",
];

/// Only programs parse flags; an example may, as a dev-dependency.
const FLAG_PARSER: &str = "clap";
const FLAG_PARSING: &[&str] = &["greenroom-cli", "social", "xtask"];

pub(super) fn check(packages: &[Package], links: &Links) -> Vec<Finding> {
    let members: Vec<_> = packages
        .iter()
        .filter(|package| package.is_member)
        .collect();
    let mut findings = check_table(&members, ARROWS);
    for package in members {
        findings.extend(check_arrows(package, ARROWS));
        findings.extend(check_flags(package));
        if WITHOUT_RUNTIME.contains(&package.name.as_str()) {
            findings.extend(check_runtime(package, links));
        }
    }
    findings
}

fn check_table(members: &[&Package], table: &[(&str, &[&str])]) -> Vec<Finding> {
    let names: BTreeSet<_> = members.iter().map(|member| member.name.as_str()).collect();
    let rows: BTreeSet<_> = table.iter().map(|(name, _)| *name).collect();
    let missing = members
        .iter()
        .filter(|member| !rows.contains(member.name.as_str()))
        .map(|member| {
            let text = format!("`{}` has no row in ARROWS of {}", member.name, file!());
            Finding::new(&member.manifest, 1, text)
        });
    let stale = rows.difference(&names).map(|name| {
        let text = format!("ARROWS names `{name}`, which is no crate of the workspace");
        Finding::new(file!(), 1, text)
    });
    missing.chain(stale).collect()
}

fn check_arrows(package: &Package, table: &[(&str, &[&str])]) -> Vec<Finding> {
    let rows: BTreeMap<_, _> = table.iter().copied().collect();
    let Some(allowed) = rows.get(package.name.as_str()) else {
        return Vec::new();
    };
    let is_against = |dependency: &&Dependency| {
        let target = dependency.package.as_str();
        rows.contains_key(target) && !allowed.contains(&target) && target != package.name
    };
    let against = package.dependencies.iter().filter(is_against);
    against
        .map(|dependency| {
            let text = format!(
                "`{}` depends on `{}`; of the workspace it may depend on {}",
                package.name,
                dependency.package,
                list(allowed)
            );
            Finding::new(&package.manifest, dependency.line, text)
        })
        .collect()
}

fn check_flags(package: &Package) -> Option<Finding> {
    if FLAG_PARSING.contains(&package.name.as_str()) {
        return None;
    }
    let mut dependencies = package.dependencies.iter();
    let parser = dependencies.find(|dependency| {
        dependency.package == FLAG_PARSER && dependency.kind == DependencyKind::Normal
    })?;
    let text = format!(
        "`{}` depends on `{FLAG_PARSER}`; flags are parsed by {} alone",
        package.name,
        list(FLAG_PARSING)
    );
    Some(Finding::new(&package.manifest, parser.line, text))
}

fn check_runtime(package: &Package, links: &Links) -> Option<Finding> {
    let chain = shortest_chain(&package.name, RUNTIMES, links)?;
    let mut dependencies = package.dependencies.iter();
    let first = dependencies.find(|dependency| chain.get(1) == Some(&dependency.package));
    let text = format!(
        "`{}` reaches a runtime: {}; it may depend on none of {}",
        package.name,
        chain.join(" -> "),
        list(RUNTIMES)
    );
    let line = first.map_or(1, |dependency| dependency.line);
    Some(Finding::new(&package.manifest, line, text))
}

fn shortest_chain(from: &str, to: &[&str], links: &Links) -> Option<Vec<String>> {
    let mut seen = BTreeSet::from([from]);
    let mut chains = VecDeque::from([vec![from.to_owned()]]);
    while let Some(chain) = chains.pop_front() {
        let end = chain.last()?;
        if to.contains(&end.as_str()) {
            return Some(chain);
        }
        for next in links.get(end).into_iter().flatten() {
            if seen.insert(next) {
                let mut longer = chain.clone();
                longer.push(next.clone());
                chains.push_back(longer);
            }
        }
    }
    None
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "no crate".to_owned();
    }
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[(&str, &[&str])] = &[("low", &[]), ("high", &["low"])];

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let depend = |(index, package): (usize, &&str)| Dependency {
            package: (*package).to_owned(),
            ident: package.replace('-', "_"),
            kind: DependencyKind::Normal,
            line: index + 10,
        };
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml").into(),
            is_member: true,
            dependencies: dependencies.iter().enumerate().map(depend).collect(),
            roots: Vec::new(),
            sources: Vec::new(),
            test_sources: Vec::new(),
            build_sources: Vec::new(),
        }
    }

    fn links(pairs: &[(&str, &str)]) -> Links {
        let mut links = Links::new();
        for (from, to) in pairs {
            let targets = links.entry((*from).to_owned()).or_default();
            targets.insert((*to).to_owned());
        }
        links
    }

    #[test]
    fn an_arrow_points_down_only() {
        assert_eq!(check_arrows(&package("high", &["low", "serde"]), TABLE), []);
        let findings = check_arrows(&package("low", &["serde", "high"]), TABLE);
        let text = "`low` depends on `high`; of the workspace it may depend on no crate";
        assert_eq!(findings, [Finding::new("crates/low/Cargo.toml", 11, text)]);
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        let (low, high, new) = (
            package("low", &[]),
            package("high", &[]),
            package("new", &[]),
        );
        assert_eq!(check_table(&[&low, &high], TABLE), []);
        let findings = check_table(&[&low, &new], TABLE);
        let texts: Vec<_> = findings
            .iter()
            .map(|finding| finding.text.as_str())
            .collect();
        assert!(
            texts[0].starts_with("`new` has no row in ARROWS"),
            "{texts:?}"
        );
        assert_eq!(
            texts[1],
            "ARROWS names `high`, which is no crate of the workspace"
        );
    }

    #[test]
    fn a_runtime_is_found_behind_other_crates() {
        let links = links(&[
            ("x", "http"),
            ("x", "a"),
            ("a", "b"),
            ("b", "mio"),
            ("b", "x"),
        ]);
        let finding = check_runtime(&package("x", &["http", "a"]), &links).expect("x reaches mio");
        assert_eq!(finding.line, 11);
        assert!(
            finding.text.contains("x -> a -> b -> mio"),
            "{}",
            finding.text
        );
        assert_eq!(check_runtime(&package("http", &[]), &links), None);
    }

    #[test]
    fn a_library_parses_no_flags() {
        let finding = check_flags(&package("greenroom", &["clap"])).expect("greenroom may not");
        assert_eq!(finding.line, 10);
        assert_eq!(check_flags(&package("greenroom-cli", &["clap"])), None);
        let mut with_example = package("greenroom", &["clap"]);
        with_example.dependencies[0].kind = DependencyKind::Development;
        assert_eq!(check_flags(&with_example), None);
    }
}
