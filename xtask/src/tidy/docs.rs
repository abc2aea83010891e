//! Every crate says what it is, and keeps the workspace's lints.

use std::path::Path;

use proc_macro2::TokenStream;
use toml::{Table, Value};

use super::tree::Tree;
use super::workspace::Package;
use super::{Finding, rust};

/// The folder whose crates are held to this.
const CRATES: &str = "crates";

/// Crates with unsafe code, and the one folder that holds it.
const UNSAFE_ROOMS: &[(&str, &str)] = &[
    ("greenroom-actor", "crates/greenroom-actor/src/raw"),
    ("greenroom-http", "crates/greenroom-http/src/raw"),
    ("greenroom-stage", "crates/greenroom-stage/src/raw"),
];

pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        if package.manifest.starts_with(CRATES) {
            findings.extend(check_readme(tree, package));
            findings.extend(check_lints(tree, package));
            findings.extend(check_crate_docs(tree, package));
        }
    }
    findings
}

fn check_readme(tree: &Tree, package: &Package) -> Option<Finding> {
    let readme = package.folder().join("README.md");
    let has_readme = tree
        .text(&readme)
        .is_some_and(|text| !text.trim().is_empty());
    let text = "missing or empty; every crate has a README.md that says what it is and is not";
    (!has_readme).then(|| Finding::new(readme, 1, text))
}

fn check_lints(tree: &Tree, package: &Package) -> Option<Finding> {
    let manifest: Table = tree.text(&package.manifest)?.parse().ok()?;
    let lints = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"));
    let inherits = lints.and_then(Value::as_bool) == Some(true);
    let forbids = |root: &Path| {
        source(tree, root)
            .is_some_and(|source| rust::has_inner_attribute(&source, &["forbid", "unsafe_code"]))
    };
    if let Some((_, room)) = UNSAFE_ROOMS.iter().find(|(name, _)| *name == package.name) {
        return check_unsafe_room(tree, package, Path::new(room));
    }
    let is_kept = inherits || package.roots.iter().all(|root| forbids(root));
    let text = "the crate neither inherits the workspace's lints (`[lints]`, `workspace = true`) \
                nor has `#![forbid(unsafe_code)]`";
    (!is_kept).then(|| Finding::new(&package.manifest, 1, text))
}

/// The crate's manifest denies unsafe code; only its room may allow it.
fn check_unsafe_room(tree: &Tree, package: &Package, room: &Path) -> Option<Finding> {
    let folder = package.folder();
    let stray = tree.files_with("rs").find_map(|(path, source)| {
        // What stands in tests is not the crate's.
        let is_ours = path.starts_with(folder.join("src")) && !path.starts_with(room);
        (is_ours && source.contains("(unsafe_code")).then(|| path.to_owned())
    });
    let text = format!("only {} may allow unsafe code", room.display());
    stray.map(|path| Finding::new(path, 1, text))
}

fn check_crate_docs(tree: &Tree, package: &Package) -> Vec<Finding> {
    let roots = package.roots.iter();
    let undocumented = roots.filter(|root| {
        source(tree, root).is_some_and(|source| !rust::has_inner_attribute(&source, &["doc"]))
    });
    undocumented
        .map(|root| {
            Finding::new(
                root,
                1,
                "no crate-level comment; it must begin with `//! ...`",
            )
        })
        .collect()
}

fn source(tree: &Tree, path: &Path) -> Option<TokenStream> {
    tree.text(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(manifest: &str, code: &str, readme: &str) -> Vec<String> {
        let package = Package {
            name: "a".to_owned(),
            manifest: "crates/a/Cargo.toml".into(),
            is_member: true,
            dependencies: Vec::new(),
            roots: vec!["crates/a/src/lib.rs".into()],
            sources: Vec::new(),
            test_sources: Vec::new(),
            build_sources: Vec::new(),
        };
        let tree = Tree::of([
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/src/lib.rs", code),
            ("crates/a/README.md", readme),
        ]);
        let findings = check(&tree, &[package]);
        findings.iter().map(ToString::to_string).collect()
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn a_crate_with_readme_lints_and_docs_is_fine() {
        assert_eq!(texts(LINTS, "//! A crate.\n", "# A\n"), [""; 0]);
        assert_eq!(
            texts("", "//! A crate.\n#![forbid(unsafe_code)]\n", "# A\n"),
            [""; 0]
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let found = texts(LINTS, "//! A crate.\n", " \n");
        assert!(
            found[0].starts_with("crates/a/README.md:1: missing"),
            "{found:?}"
        );
        let found = texts("", "//! A crate.\n", "# A\n");
        assert!(
            found[0].starts_with("crates/a/Cargo.toml:1: the crate neither"),
            "{found:?}"
        );
        let found = texts(LINTS, "/// A function.\nfn f() {}\n", "# A\n");
        assert!(
            found[0].starts_with("crates/a/src/lib.rs:1: no crate-level"),
            "{found:?}"
        );
    }
}
