//! Building of the programs that are not Rust, if their tools are installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::Context;
use bench_kit::lab_directory;
use bench_kit::tools::{is_installed, run};

/// Builds Pekko's program. Returns the folder of its class files and libraries; `None` without Java
/// and Maven.
pub(crate) fn build_pekko(target: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !is_installed("mvn") || !is_installed("java") {
        return Ok(None);
    }
    eprintln!("building Pekko's program …");
    let output = target.join("actor-bench-pekko");
    let mut maven = Command::new("mvn");
    maven
        .args(["--quiet", "--batch-mode", "package"])
        .arg(format!("-Doutput={}", output.display()))
        .current_dir(sources().join("pekko"));
    run(&mut maven).context("Pekko's program")?;
    Ok(Some(output))
}

/// Compiles Erlang's program. Returns the folder of its module; `None` without Erlang.
pub(crate) fn build_erlang(target: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !is_installed("erlc") || !is_installed("erl") {
        return Ok(None);
    }
    let output = target.join("actor-bench-erlang");
    fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    let mut compiler = Command::new("erlc");
    compiler
        .arg("-o")
        .arg(&output)
        .arg(sources().join("erlang/actor_bench.erl"));
    run(&mut compiler).context("Erlang's program")?;
    Ok(Some(output))
}

/// Returns the Java of `JAVA_HOME`, if it is set, as Maven does.
pub(crate) fn java() -> PathBuf {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    home.unwrap_or_else(|| PathBuf::from("java"))
}

fn sources() -> PathBuf {
    lab_directory().join("actor-bench/peers")
}
