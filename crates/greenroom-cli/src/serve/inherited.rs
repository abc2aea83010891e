//! Listening sockets that this process was started with: by Perl's `start_server`
//! (`SERVER_STARTER_PORT`), or by systemd (`LISTEN_FDS`, `sd_listen_fds(3)`).

use std::env::{self, VarError};
use std::num::NonZeroU32;
use std::os::fd::{OwnedFd, RawFd};

use anyhow::{Context, anyhow, bail, ensure};
use greenroom::{InheritedSocket, Upgrades};

use super::descriptors;

const STARTER: &str = "SERVER_STARTER_PORT";
const PID: &str = "LISTEN_PID";
const COUNT: &str = "LISTEN_FDS";
const NAMES: &str = "LISTEN_FDNAMES";

/// The first descriptor that systemd passes on.
const FIRST: RawFd = 3;

/// The most sockets that are accepted from systemd.
const COUNT_MAX: u32 = 1_024;

/// A socket by its number, with the name that its starter gave it.
#[derive(Debug, PartialEq)]
struct Passed {
    descriptor: RawFd,
    name: String,
    /// The name by which a process before this one had stored it.
    stored: Option<String>,
}

/// The sockets that are for this process.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// Those that take the place of `--listen`.
    pub(super) sockets: Vec<InheritedSocket>,
    /// Those that a process before this one had the service manager store, with their names.
    pub(super) stored: Vec<(String, OwnedFd)>,
}

/// Returns `true` if `start_server` has started this process, maybe in the place of another one.
pub(super) fn is_by_start_server() -> bool {
    env::var_os(STARTER).is_some()
}

/// Takes the sockets that are for this process. Must be called before anything else is opened.
///
/// # Errors
/// If a socket that the environment names cannot be served; none is left out in silence.
pub(super) fn take() -> anyhow::Result<Inherited> {
    let variable = |name: &str| match env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(anyhow!("{name} is not text")),
    };
    let mut passed = match variable(STARTER)? {
        Some(text) => by_start_server(&text)?,
        None => Vec::new(),
    };
    let pid = std::process::id();
    let (count, names) = (variable(COUNT)?, variable(NAMES)?);
    if is_for(pid, variable(PID)?.as_deref(), count.as_deref())? {
        passed.extend(by_systemd(count.as_deref(), names.as_deref())?);
    }
    for (
        index,
        Passed {
            descriptor, name, ..
        },
    ) in passed.iter().enumerate()
    {
        let is_new = |other: &Passed| other.descriptor != *descriptor;
        ensure!(
            passed[..index].iter().all(is_new),
            "{name}: the descriptor {descriptor} is passed on twice"
        );
        descriptors::check(*descriptor).with_context(|| unusable(name, *descriptor))?;
    }
    let mut inherited = Inherited::default();
    for mut each in passed {
        match each.stored.take() {
            Some(name) => {
                let socket = descriptors::take(each.descriptor);
                let socket = socket.with_context(|| unusable(&each.name, each.descriptor))?;
                inherited.stored.push((name, socket));
            }
            None => inherited.sockets.push(socket(each)?),
        }
    }
    Ok(inherited)
}

fn socket(
    Passed {
        descriptor, name, ..
    }: Passed,
) -> anyhow::Result<InheritedSocket> {
    let socket = descriptors::take(descriptor).and_then(InheritedSocket::try_from);
    let socket = socket.with_context(|| unusable(&name, descriptor))?;
    tracing::info!(descriptor, name, address = %socket.address(), "a socket was passed on");
    Ok(socket)
}

fn unusable(name: &str, descriptor: RawFd) -> String {
    format!("{name}: the descriptor {descriptor} that was passed on cannot be listened on")
}

/// Parses a text such as `5000=3;127.0.0.1:80=4;/run/app.sock=5`.
fn by_start_server(text: &str) -> anyhow::Result<Vec<Passed>> {
    ensure!(
        !text.is_empty(),
        "{STARTER} is set and names no socket: give start_server --port or --path"
    );
    let one = |entry: &str| {
        let (name, number) = entry.rsplit_once('=')?;
        let descriptor = number.parse().ok().filter(|number| *number >= 0)?;
        Some(Passed {
            descriptor,
            name: format!("{STARTER} {name}"),
            stored: None,
        })
    };
    let all: Option<Vec<_>> = text.split(';').map(one).collect();
    all.with_context(|| {
        format!("{STARTER}={text}: expected is a form such as 5000=3;/run/app.sock=4")
    })
}

/// Returns true if `LISTEN_FDS` is meant for this process: it may be inherited from another.
fn is_for(pid: u32, listen_pid: Option<&str>, count: Option<&str>) -> anyhow::Result<bool> {
    let Some(text) = listen_pid else {
        ensure!(
            count.is_none(),
            "{COUNT} is set and {PID} is not, so it is open for which process the sockets are: set \
             both or neither"
        );
        return Ok(false);
    };
    let Ok(meant) = text.parse::<NonZeroU32>() else {
        bail!("{PID}={text}: expected is the number of a process");
    };
    if meant.get() != pid {
        tracing::info!("{COUNT} is for the process {meant}, and not for this one");
    }
    Ok(meant.get() == pid)
}

fn by_systemd(count: Option<&str>, names: Option<&str>) -> anyhow::Result<Vec<Passed>> {
    let Some(text) = count else {
        return Ok(Vec::new());
    };
    let count = text
        .parse()
        .ok()
        .filter(|count| (1..=COUNT_MAX).contains(count));
    let count = count
        .with_context(|| format!("{COUNT}={text}: expected is a number from 1 to {COUNT_MAX}"))?;
    let descriptors: Vec<RawFd> = (FIRST..).zip(0..count).map(|(number, _)| number).collect();
    let names: Vec<&str> = match names {
        Some(names) => names.split(':').collect(),
        None => vec!["unknown"; descriptors.len()],
    };
    ensure!(
        names.len() == descriptors.len(),
        "{NAMES} has {} names for {} sockets of {COUNT}",
        names.len(),
        descriptors.len()
    );
    let passed = descriptors.into_iter().zip(names);
    Ok(passed
        .map(|(descriptor, name)| Passed {
            descriptor,
            name: format!("{COUNT} {name}"),
            stored: Upgrades::is_stored(name).then(|| name.to_owned()),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(passed: &[Passed]) -> Vec<RawFd> {
        passed.iter().map(|passed| passed.descriptor).collect()
    }

    #[test]
    fn start_server_names_ports_and_paths() {
        let passed = by_start_server("5000=3;127.0.0.1:80=4;[::1]:80=5;/run/a=b.sock=17")
            .unwrap_or_default();
        assert_eq!(numbers(&passed), [3, 4, 5, 17]);
        assert_eq!(passed[3].name, "SERVER_STARTER_PORT /run/a=b.sock");
    }

    #[test]
    fn what_start_server_never_says_is_refused() {
        for text in [
            "", "5000", "5000=", "5000=x", "5000=-1", "5000=3;", ";5000=3",
        ] {
            let error = by_start_server(text).expect_err(text).to_string();
            assert!(error.contains("SERVER_STARTER_PORT"), "{error}");
        }
    }

    #[test]
    fn systemd_counts_from_three() {
        let passed = by_systemd(Some("2"), Some("http:admin")).unwrap_or_default();
        assert_eq!(numbers(&passed), [3, 4]);
        assert_eq!(passed[1].name, "LISTEN_FDS admin");
        assert_eq!(
            numbers(&by_systemd(Some("1"), None).unwrap_or_default()),
            [3]
        );
        assert!(by_systemd(None, None).is_ok_and(|passed| passed.is_empty()));
    }

    #[test]
    fn what_was_stored_is_told_from_the_sockets_of_units() {
        let names = "greenroom.socket:greenroom/main/bound/[++1]+80";
        let passed = by_systemd(Some("2"), Some(names)).unwrap_or_default();
        assert_eq!(passed[0].stored, None);
        let stored = passed[1].stored.as_deref();
        assert_eq!(stored, Some("greenroom/main/bound/[++1]+80"));
    }

    #[test]
    fn what_systemd_never_says_is_refused() {
        for (count, names) in [
            ("0", None),
            ("-1", None),
            ("x", None),
            ("", None),
            ("2147483647", None),
            ("2", Some("one")),
            ("1", Some("a:b")),
        ] {
            assert!(by_systemd(Some(count), names).is_err(), "{count}");
        }
        for text in ["", "0", "x", "-1"] {
            assert!(is_for(7, Some(text), Some("1")).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_for_another_process_is_left_alone() {
        assert!(matches!(is_for(7, Some("8"), Some("1")), Ok(false)));
        assert!(matches!(is_for(7, None, None), Ok(false)));
        assert!(matches!(is_for(7, Some("7"), Some("1")), Ok(true)));
    }

    #[test]
    fn sockets_for_nobody_are_refused() {
        let error = is_for(7, None, Some("2")).expect_err("nobody is named");
        assert!(error.to_string().contains("LISTEN_PID"), "{error}");
    }
}
