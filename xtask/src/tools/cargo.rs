//! Programs that cargo builds: what makes the book, and what makes and checks packages. Each is
//! installed only when something asks for it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::process::{bounded, run};
use super::root::{Root, Tool};

/// A program, which is a crate of the same name.
struct Program {
    name: &'static str,
    version: &'static str,
    flags: &'static [&'static str],
}

const PROGRAMS: [Program; 7] = [
    Program {
        name: "cargo-auditable",
        version: "0.7.7",
        flags: &[],
    },
    Program {
        name: "cargo-cyclonedx",
        version: "0.5.9",
        flags: &[],
    },
    Program {
        name: "cargo-deb",
        version: "3.8.0",
        flags: &[],
    },
    Program {
        name: "cargo-deny",
        version: "0.20.2",
        flags: &[],
    },
    Program {
        name: "cargo-semver-checks",
        version: "0.51.0",
        flags: &[],
    },
    Program {
        name: "mdbook",
        version: "0.5.4",
        flags: &["--no-default-features", "--features", "search"],
    },
    Program {
        name: "rust-audit-info",
        version: "0.5.4",
        flags: &[],
    },
];

/// Installs the program of this name unless it is there, and says where.
pub(super) fn path(root: &Root, name: &str) -> Result<PathBuf> {
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name) else {
        let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!("{name} is not pinned here; there are {}", names.join(", "));
    };
    let file = format!("bin/{name}");
    let tool = Tool {
        directory: program.name,
        pins: program.version,
        program: &file,
    };
    root.unless_stamped(&tool, |directory| build(program, directory))?;
    Ok(root.join(name).join(file))
}

/// Not optimised: it is sooner built, and what it works on is small.
fn build(program: &Program, directory: &Path) -> Result<()> {
    run(bounded("cargo")
        .args(["install", program.name, "--version", program.version])
        .args(["--locked", "--debug", "--root"])
        .arg(directory)
        .args(program.flags))
    .with_context(|| format!("cargo must build {}", program.name))
}
