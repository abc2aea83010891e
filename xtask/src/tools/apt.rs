//! The programs that the distribution has. apt runs only if one of them is missing.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Outcome;
use super::process::{bounded, is_on_path, run, succeeds};
use super::root::Root;

struct Need {
    package: &'static str,
    what: &'static str,
    is_met: fn() -> bool,
}

const NEEDS: [Need; 10] = [
    Need {
        package: "apache2-utils",
        what: "ab",
        is_met: || is_on_path("ab"),
    },
    Need {
        package: "wrk",
        what: "wrk",
        is_met: || is_on_path("wrk"),
    },
    Need {
        package: "nghttp2-client",
        what: "h2load and nghttp",
        is_met: || is_on_path("h2load") && is_on_path("nghttp"),
    },
    Need {
        package: "slowhttptest",
        what: "slowhttptest",
        is_met: || is_on_path("slowhttptest"),
    },
    Need {
        package: "curl",
        what: "curl",
        is_met: || is_on_path("curl"),
    },
    Need {
        package: "python3-venv",
        what: "python3 with venv",
        is_met: || succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])),
    },
    Need {
        package: "golang-go",
        what: "go",
        is_met: || is_on_path("go"),
    },
    Need {
        package: "nodejs",
        what: "node",
        is_met: || is_on_path("node"),
    },
    Need {
        package: "npm",
        what: "npm",
        is_met: || is_on_path("npm"),
    },
    Need {
        package: "redis-server",
        what: "redis-server",
        is_met: || is_on_path("redis-server"),
    },
];

pub(super) fn install(_root: &Root) -> Result<Outcome> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(Outcome::Present);
    }
    apt_get(&missing).with_context(|| describe(&missing))?;
    let still_missing = self::missing();
    if !still_missing.is_empty() {
        bail!("{}, although apt-get succeeded", describe(&still_missing));
    }
    Ok(Outcome::Installed)
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !(need.is_met)()).collect()
}

fn apt_get(needs: &[&Need]) -> Result<()> {
    if !is_on_path("apt-get") {
        bail!("this system has no apt-get: install them by its own means");
    }
    run(apt_command()?.arg("update"))?;
    run(apt_command()?
        .args(["install", "--yes", "--no-install-recommends"])
        .args(needs.iter().map(|need| need.package)))
}

fn apt_command() -> Result<Command> {
    let mut command = if is_root() {
        bounded("env")
    } else if succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut command = bounded("sudo");
        command.args(["-n", "env"]);
        command
    } else {
        bail!("apt-get needs root, and sudo asks for a password or is not there");
    };
    command.args([
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "--quiet",
        "--option=DPkg::Lock::Timeout=120",
    ]);
    Ok(command)
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
}

fn describe(needs: &[&Need]) -> String {
    let list: Vec<String> = needs
        .iter()
        .map(|need| format!("{} (package {})", need.what, need.package))
        .collect();
    format!("missing: {}", list.join(", "))
}
