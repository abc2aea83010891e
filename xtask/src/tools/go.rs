//! Programs that Go builds of pinned modules.

use std::path::Path;

use anyhow::{Context, Result};

use super::process::{bounded, run};

/// Builds these packages of the module in `pins/` into a directory.
pub(super) fn install(module: &str, packages: &[&str], directory: &Path) -> Result<()> {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/pins");
    run(bounded("go")
        .arg("install")
        .args(packages)
        .current_dir(pins.join(module))
        .env("GOBIN", directory)
        .env("GOFLAGS", "-mod=readonly"))
    .with_context(|| format!("Go must build {module}"))
}
