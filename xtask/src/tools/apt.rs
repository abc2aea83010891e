//! Programs and modules of the distribution. apt runs only if one of them is missing.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Outcome;
use super::process::{bounded, is_on_path, run, succeeds};
use super::root::Root;

/// A package, and a check that it is installed, from any source.
struct Need {
    package: &'static str,
    sign: Sign,
}

enum Sign {
    /// Programs on the search path.
    Programs(&'static [&'static str]),
    /// Modules that `python3` can import.
    PythonModules(&'static str),
    /// A module that `perl` can load.
    PerlModule(&'static str),
    /// A library that `ruby` can load.
    RubyLibrary(&'static str),
    /// A file, by its absolute path.
    File(&'static str),
}

const fn programs(package: &'static str, names: &'static [&'static str]) -> Need {
    let sign = Sign::Programs(names);
    Need { package, sign }
}

const fn perl(package: &'static str, module: &'static str) -> Need {
    let sign = Sign::PerlModule(module);
    Need { package, sign }
}

/// The packages that the tests use.
const NEEDS: &[Need] = &[
    programs("apache2-utils", &["ab"]),
    programs("wrk", &["wrk"]),
    programs("nghttp2-client", &["h2load", "nghttp"]),
    programs("slowhttptest", &["slowhttptest"]),
    programs("curl", &["curl"]),
    programs("openssl", &["openssl"]),
    Need {
        package: "python3-venv",
        sign: Sign::PythonModules("ensurepip, venv"),
    },
    programs("golang-go", &["go"]),
    programs("nodejs", &["node"]),
    programs("npm", &["npm"]),
    programs("redis-server", &["redis-server"]),
    programs("haproxy", &["haproxy"]),
    programs("prometheus", &["prometheus", "promtool"]),
    programs("iproute2", &["ip", "tc"]),
    programs("faketime", &["faketime"]),
    programs("systemd", &["systemd-analyze"]),
    // For `make bench-instructions`.
    programs("valgrind", &["valgrind"]),
    programs("chromium", &["chromium"]),
    programs("firefox-esr", &["firefox-esr"]),
    // Browsers need some font, and none of them depends on one.
    Need {
        package: "fonts-dejavu-core",
        sign: Sign::File("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
    },
    programs("perl", &["perl"]),
    programs("systemd", &["systemd-socket-activate"]),
    perl("libanyevent-perl", "AnyEvent"),
    perl("libev-perl", "EV"),
    perl("libhttp-parser-xs-perl", "HTTP::Parser::XS"),
    perl("libio-async-perl", "IO::Async"),
    perl("liblwp-protocol-https-perl", "LWP::Protocol::https"),
    perl("libmojolicious-perl", "Mojolicious"),
    perl(
        "libplack-middleware-deflater-perl",
        "Plack::Middleware::Deflater",
    ),
    perl(
        "libplack-middleware-session-perl",
        "Plack::Middleware::Session",
    ),
    perl("libplack-perl", "Plack"),
    perl("libserver-starter-perl", "Server::Starter"),
    perl("libtest-tcp-perl", "Test::TCP"),
    perl("libwww-perl", "LWP::UserAgent"),
];

/// The servers that benchmarks measure beside ours.
const PEERS: &[Need] = &[
    programs("testssl.sh", &["testssl"]),
    programs("caddy", &["caddy"]),
    programs("haproxy", &["haproxy"]),
    programs("nats-server", &["nats-server"]),
    programs("nginx", &["nginx"]),
    programs("redis-server", &["redis-server"]),
    programs("erlang-base", &["erl", "erlc"]),
    programs("libserver-starter-perl", &["start_server"]),
    // The loops of lab/experiments/loops.toml.
    programs("gcc", &["gcc"]),
    Need {
        package: "libev-dev",
        sign: Sign::File("/usr/include/ev.h"),
    },
    perl("libevent-perl", "Event"),
    perl("libglib-perl", "Glib"),
    perl("libpoe-perl", "POE"),
    // The frameworks of lab/experiments/frameworks.toml.
    programs("default-jdk-headless", &["java", "javac"]),
    programs("jruby", &["jruby"]),
    programs("maven", &["mvn"]),
    programs("ruby", &["ruby"]),
    Need {
        package: "ruby-celluloid-io",
        sign: Sign::RubyLibrary("celluloid/io"),
    },
    Need {
        package: "ruby-eventmachine",
        sign: Sign::RubyLibrary("eventmachine"),
    },
    Need {
        package: "ruby-http-parser.rb",
        sign: Sign::RubyLibrary("http/parser"),
    },
    perl("feersum", "Feersum"),
    perl("starlet", "Plack::Handler::Starlet"),
    perl("starman", "Starman"),
    perl("twiggy", "Twiggy"),
    programs("uwsgi-plugin-psgi", &["uwsgi_psgi"]),
];

/// The makers of the Debian package and of the image, and what tries them.
const PACKAGERS: &[Need] = &[
    programs("buildah", &["buildah"]),
    programs("iptables", &["iptables-save"]),
    programs("lintian", &["lintian"]),
    programs("mmdebstrap", &["mmdebstrap"]),
    programs("podman", &["podman"]),
    programs("runc", &["runc"]),
    programs("systemd-container", &["systemd-nspawn"]),
];

pub(super) fn install(_root: &Root) -> Result<Outcome> {
    install_all(NEEDS)
}

pub(super) fn install_peers(_root: &Root) -> Result<Outcome> {
    install_all(PEERS)
}

pub(super) fn install_packagers(_root: &Root) -> Result<Outcome> {
    install_all(PACKAGERS)
}

fn install_all(needs: &[Need]) -> Result<Outcome> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(Outcome::Present);
    }
    apt_get(&missing).with_context(|| describe(&missing))?;
    let still_missing = self::missing(needs);
    if !still_missing.is_empty() {
        bail!("{}, although apt-get succeeded", describe(&still_missing));
    }
    Ok(Outcome::Installed)
}

fn missing(needs: &[Need]) -> Vec<&Need> {
    needs.iter().filter(|need| !need.sign.is_seen()).collect()
}

impl Sign {
    fn is_seen(&self) -> bool {
        match self {
            Self::Programs(names) => names.iter().all(|name| is_on_path(name)),
            Self::PythonModules(modules) => {
                succeeds(Command::new("python3").args(["-c", &format!("import {modules}")]))
            }
            Self::PerlModule(module) => {
                succeeds(Command::new("perl").args([&format!("-M{module}"), "-e1"]))
            }
            Self::RubyLibrary(library) => {
                succeeds(Command::new("ruby").args(["-r", library, "-e", "1"]))
            }
            Self::File(path) => Path::new(path).is_file(),
        }
    }
}

impl Display for Sign {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs(names) => formatter.write_str(&names.join(" and ")),
            Self::PythonModules(modules) => write!(formatter, "python3 with {modules}"),
            Self::PerlModule(module) => write!(formatter, "perl with {module}"),
            Self::RubyLibrary(library) => write!(formatter, "ruby with {library}"),
            Self::File(path) => formatter.write_str(path),
        }
    }
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
        .map(|need| format!("{} (package {})", need.sign, need.package))
        .collect();
    format!("missing: {}", list.join(", "))
}
