//! A declared dependency is a used one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cargo_metadata::DependencyKind;
use proc_macro2::TokenStream;
use toml::{Table, Value};

use super::tree::Tree;
use super::workspace::{Dependency, Package, line_of};
use super::{Finding, rust};

/// Package, dependency, and why it is declared though no line of the package names it.
const UNNAMED: &[(&str, &str, &str)] = &[
    (
        "greenroom",
        "serde",
        "the example of the README, which is a documentation test of this crate",
    ),
    (
        "greenroom-actor",
        "humantime-serde",
        "`#[serde(with = \"humantime_serde\")]`, a path in a string",
    ),
    (
        "greenroom-proxy",
        "humantime-serde",
        "`#[serde(with = \"humantime_serde\")]`, a path in a string",
    ),
    (
        "greenroom-proxy",
        "rcgen",
        "the authority of greenroom-cli's tests, whose source is also in these tests",
    ),
    (
        "greenroom-proxy",
        "tracing-subscriber",
        "the log of greenroom-psgi's tests, whose source is also in these tests",
    ),
    (
        "social",
        "humantime-serde",
        "`#[serde(with = \"humantime_serde\")]`, a path in a string",
    ),
    (
        "lab-loops",
        "slab",
        "the registry of greenroom-server's loops, which it compiles from that crate's folder",
    ),
];

pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = check_inherited(tree);
    for package in packages {
        findings.extend(check_named(tree, package, UNNAMED));
    }
    findings
}

/// Each dependency of a package must be named by the code that it is declared for.
fn check_named(tree: &Tree, package: &Package, unnamed: &[(&str, &str, &str)]) -> Vec<Finding> {
    let code = roots_below(tree, &package.sources);
    let tests = roots_below(tree, &package.test_sources);
    let build = roots_below(tree, &package.build_sources);
    let is_used = |dependency: &Dependency| match dependency.kind {
        DependencyKind::Development => {
            code.contains(&dependency.ident)
                || tests.contains(&dependency.ident)
                || is_in_documentation(tree, package.folder(), &dependency.ident)
        }
        DependencyKind::Build => build.contains(&dependency.ident),
        _ => code.contains(&dependency.ident),
    };
    let is_excused = |dependency: &Dependency| {
        let mut rows = unnamed.iter();
        rows.any(|(name, on, _)| *name == package.name && *on == dependency.package)
    };
    let dependencies = package.dependencies.iter();
    dependencies
        .filter(|dependency| !is_used(dependency) && !is_excused(dependency))
        .map(|dependency| unused(package, dependency))
        .collect()
}

fn unused(package: &Package, dependency: &Dependency) -> Finding {
    let (place, elsewhere) = match dependency.kind {
        DependencyKind::Development => ("code, tests or documentation", ""),
        DependencyKind::Build => ("build script", ""),
        _ => ("code", ", move it to [dev-dependencies] if tests name it"),
    };
    let text = format!(
        "unused dependency `{}`: no path in {place} of `{}` begins with `{}::`; \
         remove it{elsewhere}, \
         or give a reason in UNNAMED of {}",
        dependency.package,
        package.name,
        dependency.ident,
        file!()
    );
    Finding::new(&package.manifest, dependency.line, text)
}

fn roots_below(tree: &Tree, sources: &[PathBuf]) -> BTreeSet<String> {
    let files = tree.files_with("rs");
    files
        .filter(|(path, _)| sources.iter().any(|source| path.starts_with(source)))
        .filter_map(|(_, text)| text.parse::<TokenStream>().ok())
        .flat_map(|source| rust::path_roots(&source))
        .collect()
}

/// The examples in doc comments and Markdown are code as well. Prose that names a path is taken for
/// such code.
fn is_in_documentation(tree: &Tree, folder: &Path, ident: &str) -> bool {
    let path = format!("{ident}::");
    let files = tree.files().filter(|(file, _)| file.starts_with(folder));
    let mut lines = files.flat_map(|(file, text)| {
        let is_markdown = file.extension().is_some_and(|extension| extension == "md");
        let is_read = move |line: &&str| is_markdown || line.trim_start().starts_with("//");
        text.lines().filter(is_read)
    });
    lines.any(|line| {
        line.match_indices(&path).any(|(start, _)| {
            let before = line[..start].chars().next_back();
            before.is_none_or(|sign| !sign.is_alphanumeric() && sign != '_')
        })
    })
}

/// Each entry of a `[workspace.dependencies]` must be inherited by a package of that workspace.
fn check_inherited(tree: &Tree) -> Vec<Finding> {
    let manifests = manifests(tree);
    let workspaces = manifests.iter().filter_map(|(path, manifest)| {
        let entries = manifest.get("workspace")?.get("dependencies")?.as_table()?;
        Some((*path, entries))
    });
    let mut findings = Vec::new();
    for (path, entries) in workspaces {
        let members = manifests
            .iter()
            .filter(|(member, _)| workspace_of(member, &manifests) == path);
        let inherited: BTreeSet<_> = members.flat_map(|(_, member)| inherited(member)).collect();
        let text = tree.text(path).unwrap_or_default();
        let unused = entries.keys().filter(|key| !inherited.contains(*key));
        findings.extend(unused.map(|key| {
            let what = format!(
                "no package of the workspace inherits `{key}`; remove it, or inherit it by \
                 `{key}.workspace = true`"
            );
            Finding::new(path, line_of(text, "workspace.dependencies", key), what)
        }));
    }
    findings
}

fn manifests(tree: &Tree) -> Vec<(&Path, Table)> {
    let files = tree
        .files()
        .filter(|(path, _)| path.ends_with("Cargo.toml"));
    files
        .filter_map(|(path, text)| Some((path, text.parse().ok()?)))
        .collect()
}

/// The manifest with a `[workspace]` that is nearest above, which may be the package's own.
fn workspace_of<'a>(member: &'a Path, manifests: &[(&'a Path, Table)]) -> &'a Path {
    let above = manifests.iter().filter(|(path, manifest)| {
        let folder = path.parent().unwrap_or(Path::new(""));
        manifest.contains_key("workspace") && member.starts_with(folder)
    });
    above
        .map(|(path, _)| *path)
        .max_by_key(|path| path.components().count())
        .unwrap_or(member)
}

fn inherited(manifest: &Table) -> BTreeSet<String> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let of_targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = of_targets.into_iter().flat_map(Table::values);
    let tables = of_targets.filter_map(Value::as_table).chain([manifest]);
    tables
        .flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()))
        .flatten()
        .filter(|(_, value)| value.get("workspace").and_then(Value::as_bool) == Some(true))
        .map(|(key, _)| key.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(dependencies: &[(&str, DependencyKind)]) -> Package {
        let depend = |(index, (name, kind)): (usize, &(&str, DependencyKind))| Dependency {
            package: (*name).to_owned(),
            ident: name.replace('-', "_"),
            kind: *kind,
            line: index + 1,
        };
        Package {
            name: "a".to_owned(),
            manifest: "crates/a/Cargo.toml".into(),
            is_member: true,
            dependencies: dependencies.iter().enumerate().map(depend).collect(),
            roots: vec!["crates/a/src/lib.rs".into()],
            sources: vec!["crates/a/src".into()],
            test_sources: vec!["crates/a/tests".into()],
            build_sources: vec!["crates/a/build.rs".into()],
        }
    }

    fn unused_lines(tree: &Tree, package: &Package) -> Vec<usize> {
        let findings = check_named(tree, package, &[("a", "excused", "for its feature")]);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn code_must_name_its_dependencies() {
        use DependencyKind::{Build, Normal};
        let tree = Tree::of([
            (
                "crates/a/src/lib.rs",
                "//! As `prose::only` says.\nuse http_body::Body;\n",
            ),
            (
                "crates/a/src/inner.rs",
                "fn f(bytes: usize) { slab::new(\"tower::x\") }",
            ),
            ("crates/a/tests/it.rs", "use tempfile::tempdir;"),
            ("crates/a/build.rs", "use cc::Build;"),
            ("crates/b/src/lib.rs", "use libc::c_int;"),
        ]);
        let names = [
            "http-body",
            "slab",
            "bytes",
            "tower",
            "tempfile",
            "libc",
            "prose",
            "excused",
        ];
        let package = package(&names.map(|name| (name, Normal)));
        assert_eq!(unused_lines(&tree, &package), [3, 4, 5, 6, 7]);
        let package = self::package(&[("cc", Build), ("slab", Build)]);
        assert_eq!(unused_lines(&tree, &package), [2]);
    }

    #[test]
    fn a_dev_dependency_may_be_named_by_code_tests_or_documentation() {
        use DependencyKind::Development;
        let tree = Tree::of([
            (
                "crates/a/src/lib.rs",
                "//! let x = hex::encode(y);\nmod t { use slab::Slab; }",
            ),
            ("crates/a/README.md", "anyhow::Result, not_libc::x"),
            ("crates/a/tests/it.rs", "use tempfile::tempdir;"),
        ]);
        let names = ["hex", "slab", "anyhow", "tempfile", "libc"];
        let package = package(&names.map(|name| (name, Development)));
        assert_eq!(unused_lines(&tree, &package), [5]);
    }

    #[test]
    fn a_workspace_entry_is_inherited_in_its_own_workspace() {
        let tree = Tree::of([
            (
                "Cargo.toml",
                "[workspace]\n[workspace.dependencies]\n\
                 used = \"1\"\ntargeted = \"1\"\nlab = \"1\"\n",
            ),
            (
                "crates/a/Cargo.toml",
                "[dependencies]\nused.workspace = true\n\
                 [target.'cfg(unix)'.dev-dependencies]\ntargeted = { workspace = true }\n",
            ),
            (
                "lab/x/Cargo.toml",
                "[workspace]\ndependencies = { lab = \"1\" }\n",
            ),
            (
                "lab/x/b/Cargo.toml",
                "[dependencies]\nlab.workspace = true\n",
            ),
        ]);
        let findings = check_inherited(&tree);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(
            (findings[0].path.as_path(), findings[0].line),
            (Path::new("Cargo.toml"), 5)
        );
    }
}
