use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Target, TargetKind};

use super::tree::Tree;

/// For each package the packages that it depends on, other than for building and testing.
pub(super) type Links = BTreeMap<String, BTreeSet<String>>;

/// The repository as cargo sees it.
pub(super) struct Workspace {
    /// The workspace's, and those of the workspaces that it excludes.
    pub(super) packages: Vec<Package>,
    /// The resolved graph of the workspace, packages from the registry included.
    pub(super) links: Links,
}

#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    /// From the repository's root, as all paths here.
    pub(super) manifest: PathBuf,
    /// Not of a workspace of its own, such as the fuzz targets.
    pub(super) is_member: bool,
    pub(super) dependencies: Vec<Dependency>,
    /// Files with which a library or program begins.
    pub(super) roots: Vec<PathBuf>,
    /// Folders and files of libraries and programs.
    pub(super) sources: Vec<PathBuf>,
    /// Folders and files of tests, examples and benches.
    pub(super) test_sources: Vec<PathBuf>,
    pub(super) build_sources: Vec<PathBuf>,
}

impl Package {
    pub(super) fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new(""))
    }
}

#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) package: String,
    /// Its name in Rust code.
    pub(super) ident: String,
    pub(super) kind: DependencyKind,
    /// The line of the manifest that declares it.
    pub(super) line: usize,
}

impl Workspace {
    pub(super) fn read(root: &Path, tree: &Tree) -> Result<Self> {
        let main = metadata(MetadataCommand::new().current_dir(root))?;
        let mut packages = read_packages(&main, true, root, tree)?;
        for (path, text) in tree.files() {
            let is_manifest = path.ends_with("Cargo.toml") && text.contains("[package]");
            if is_manifest && !packages.iter().any(|package| package.manifest == path) {
                let path = root.join(path);
                let other = metadata(MetadataCommand::new().no_deps().manifest_path(path))?;
                packages.extend(read_packages(&other, false, root, tree)?);
            }
        }
        let links = links(&main);
        Ok(Self { packages, links })
    }
}

fn metadata(command: &MetadataCommand) -> Result<Metadata> {
    command.exec().context("`cargo metadata` failed")
}

fn read_packages(
    metadata: &Metadata,
    is_member: bool,
    root: &Path,
    tree: &Tree,
) -> Result<Vec<Package>> {
    let library_names = library_names(metadata);
    let members = metadata.packages.iter();
    members
        .filter(|package| metadata.workspace_members.contains(&package.id))
        .map(|package| read_package(package, is_member, root, tree, &library_names))
        .collect()
}

fn read_package(
    package: &cargo_metadata::Package,
    is_member: bool,
    root: &Path,
    tree: &Tree,
    library_names: &BTreeMap<String, String>,
) -> Result<Package> {
    let manifest = relative(package.manifest_path.as_std_path(), root)?;
    let text = tree.text(&manifest).unwrap_or_default();
    let dependencies = package.dependencies.iter();
    let mut read = Package {
        name: package.name.to_string(),
        is_member,
        dependencies: dependencies
            .map(|dependency| read_dependency(dependency, text, library_names))
            .collect(),
        manifest,
        roots: Vec::new(),
        sources: Vec::new(),
        test_sources: Vec::new(),
        build_sources: Vec::new(),
    };
    for target in &package.targets {
        add_target(&mut read, target, root)?;
    }
    Ok(read)
}

fn read_dependency(
    dependency: &cargo_metadata::Dependency,
    manifest: &str,
    library_names: &BTreeMap<String, String>,
) -> Dependency {
    let key = dependency.rename.as_ref().unwrap_or(&dependency.name);
    let library = library_names.get(&dependency.name);
    let ident = match (&dependency.rename, library) {
        (None, Some(library)) => library.clone(),
        _ => key.replace('-', "_"),
    };
    Dependency {
        package: dependency.name.clone(),
        ident,
        kind: dependency.kind,
        line: line_of(manifest, table(dependency.kind), key),
    }
}

/// Returns the name of each package's library if it is not the package's own, such as `md5` of
/// `md-5`.
fn library_names(metadata: &Metadata) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for package in &metadata.packages {
        let mut targets = package.targets.iter();
        if let Some(library) = targets.find(|target| is_library(target)) {
            names.insert(package.name.to_string(), library.name.replace('-', "_"));
        }
    }
    names
}

fn is_library(target: &Target) -> bool {
    let kinds = [TargetKind::Lib, TargetKind::RLib, TargetKind::ProcMacro];
    target.kind.iter().any(|kind| kinds.contains(kind))
}

fn add_target(package: &mut Package, target: &Target, root: &Path) -> Result<()> {
    let path = relative(target.src_path.as_std_path(), root)?;
    let folder = source_folder(&path, package.folder());
    if is_library(target) || target.is_bin() {
        package.roots.push(path);
        package.sources.push(folder);
    } else if target.is_custom_build() {
        package.build_sources.push(path);
    } else {
        package.test_sources.push(folder);
    }
    Ok(())
}

/// Returns the folder of the modules of the target that begins in `path`. One beside the manifest,
/// or in a folder that several packages share, is that file alone.
fn source_folder(path: &Path, package: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != package && folder.starts_with(package) => folder.to_owned(),
        _ => path.to_owned(),
    }
}

fn relative(path: &Path, root: &Path) -> Result<PathBuf> {
    // An example of a package may stand at `../../examples`.
    let canonical = path.canonicalize();
    let path = canonical.with_context(|| format!("{} is not there", path.display()))?;
    let relative = path.strip_prefix(root);
    let relative = relative.with_context(|| format!("{} is outside", path.display()))?;
    Ok(relative.to_owned())
}

fn table(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::Development => "dev-dependencies",
        DependencyKind::Build => "build-dependencies",
        _ => "dependencies",
    }
}

/// The line of `key` in the table `table` of a manifest, 1 where cargo sees it and we do not.
pub(super) fn line_of(manifest: &str, table: &str, key: &str) -> usize {
    let mut is_inside = false;
    for (index, line) in manifest.lines().enumerate() {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches([']', ' ']);
            if header
                .strip_suffix(key)
                .is_some_and(|rest| rest.ends_with(&format!("{table}.")))
            {
                return index + 1;
            }
            is_inside = header == table || header.ends_with(&format!(".{table}"));
        }
        let rest = line.strip_prefix(key);
        if is_inside && rest.is_some_and(|rest| rest.starts_with([' ', '.', '='])) {
            return index + 1;
        }
    }
    1
}

fn links(metadata: &Metadata) -> Links {
    let packages = metadata.packages.iter();
    let names: BTreeMap<_, _> = packages
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let mut links = Links::new();
    for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
        let normal = node.deps.iter().filter(|dependency| {
            let mut kinds = dependency.dep_kinds.iter();
            kinds.any(|info| info.kind == DependencyKind::Normal)
        });
        let targets = normal.map(|dependency| names[&dependency.pkg].clone());
        links
            .entry(names[&node.id].clone())
            .or_default()
            .extend(targets);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n\n[dependencies]\nhttp-body = \"1\"\n\
                            http = \"1\"\n\n[dependencies.slab]\nversion = \"1\"\n\n\
                            [target.'cfg(unix)'.dev-dependencies]\nhttp.workspace = true\n";

    #[test]
    fn a_dependency_is_found_in_its_own_table() {
        assert_eq!(line_of(MANIFEST, "dependencies", "http"), 6);
        assert_eq!(line_of(MANIFEST, "dependencies", "slab"), 8);
        assert_eq!(line_of(MANIFEST, "dev-dependencies", "http"), 12);
        assert_eq!(line_of(MANIFEST, "build-dependencies", "http"), 1);
    }

    #[test]
    fn a_shared_folder_is_not_the_packages_own() {
        let folder = |path: &str| source_folder(Path::new(path), Path::new("crates/a"));
        assert_eq!(folder("crates/a/src/lib.rs"), Path::new("crates/a/src"));
        assert_eq!(folder("crates/a/build.rs"), Path::new("crates/a/build.rs"));
        assert_eq!(folder("examples/pixel.rs"), Path::new("examples/pixel.rs"));
    }
}
