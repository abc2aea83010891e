//! Warnings: the things that an operator should look at now.

use greenroom_server::{Pressure, UpgradeResult};
use greenroom_stage::Placed;

use super::super::history::{self, SERIES};
use super::Tone;
use super::format::{drawn, micros};
use crate::Status;

/// Samples of the last minute.
const MINUTE: usize = 60;

/// Something to look at.
#[derive(Debug)]
pub(in super::super) struct Warning {
    pub(in super::super) tone: Tone,
    pub(in super::super) what: String,
    pub(in super::super) advice: &'static str,
    /// The page of the book that tells more, and its place there.
    pub(in super::super) page: &'static str,
}

impl Warning {
    fn new(tone: Tone, what: String, advice: &'static str, page: &'static str) -> Self {
        Self {
            tone,
            what,
            advice,
            page,
        }
    }

    pub(in super::super) fn url(&self) -> String {
        super::in_book(self.page)
    }
}

/// Returns what is wrong, the worst first.
pub(super) fn warnings(status: &Status, history: &history::Shown, now: i64) -> Vec<Warning> {
    let mut warnings = readiness(status);
    warnings.extend(rejected(history));
    warnings.extend(loops(status));
    warnings.extend(stages(status));
    warnings.extend(routes(status));
    #[cfg(feature = "bus")]
    warnings.extend(buses(status));
    #[cfg(feature = "cluster")]
    warnings.extend(clusters(status));
    #[cfg(feature = "psgi")]
    warnings.extend(perl(status));
    #[cfg(feature = "proxy")]
    warnings.extend(upstreams(status));
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    warnings.extend(certificates(status, now));
    warnings.extend(upgrade(status, now));
    warnings.sort_by_key(|warning| std::cmp::Reverse(warning.tone));
    warnings
}

fn readiness(status: &Status) -> Vec<Warning> {
    let reasons = status.not_ready.iter();
    let advice = "Load balancers that ask /ready send requests elsewhere meanwhile.";
    let warnings = reasons.map(|reason| {
        let what = format!("Not ready: {reason}.");
        Warning::new(Tone::Warn, what, advice, "operate.md#health-and-readiness")
    });
    warnings.collect()
}

fn rejected(history: &history::Shown) -> Option<Warning> {
    let series = SERIES.iter();
    let mut rejected = series
        .enumerate()
        .filter(|(_, series)| series.key == "rejected_per_second");
    let (index, _) = rejected.next()?;
    let latest = history.recent.iter().rev().take(MINUTE);
    let sum: f32 = latest.map(|sample| sample[index]).sum();
    (sum >= 0.5).then(|| {
        let what = format!(
            "About {} requests were refused in the last minute.",
            drawn(sum.round())
        );
        let advice = "Admission, below, names who is refused and what helps.";
        Warning::new(Tone::Bad, what, advice, "operate.md#who-is-refused")
    })
}

fn loops(status: &Status) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for each in &status.loops {
        let (name, lag) = (&each.name, micros(each.lag_micros));
        if each.pressure != Pressure::None {
            let what = format!("{name} is behind: what is ready waits for {lag}.");
            let advice = "A task that is spawned on it holds it up, or the machine is full; the log \
                          names it.";
            let tone = if each.pressure == Pressure::Over {
                Tone::Bad
            } else {
                Tone::Warn
            };
            warnings.push(Warning::new(tone, what, advice, "placement.md"));
        }
    }
    warnings
}

fn stages(status: &Status) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for stage in &status.stages {
        let (wait, max) = (stage.predicted_wait_micros, stage.queue_wait_max_micros);
        let is_full =
            stage.queue_len >= stage.queue_max || stage.queue_bytes >= stage.queue_bytes_max;
        if u128::from(wait) * 10 >= u128::from(max) * 9 || is_full {
            let what = format!(
                "The stage {} is full: a new request would wait for {}.",
                stage.name,
                micros(wait)
            );
            let advice = "Who has used most of it is refused; all others are served.";
            warnings.push(Warning::new(Tone::Bad, what, advice, "placement.md"));
        }
    }
    warnings
}

fn routes(status: &Status) -> Vec<Warning> {
    let routes = status.routes.iter();
    let stalling = routes.filter(|route| route.placed == Placed::Inline && route.stalls > 0);
    let warnings = stalling.map(|route| {
        let (method, path, stalls) = (&route.method, &route.path, route.stalls);
        let what = format!("{method} {path} held up its loop {stalls} times.");
        let advice = "It is placed inline by name: let Placement::auto place it.";
        Warning::new(Tone::Warn, what, advice, "placement.md")
    });
    warnings.collect()
}

#[cfg(feature = "bus")]
fn buses(status: &Status) -> Vec<Warning> {
    use greenroom_bus::ConnectionState;

    let connections = status.buses.iter().filter_map(|bus| bus.remote());
    let away = connections.filter(|(_, remote)| remote.state == ConnectionState::Away);
    let warnings = away.map(|(server, remote)| {
        let error = remote
            .last_error
            .as_deref()
            .unwrap_or("the connection was lost");
        let what = format!("{server} is away: {error}.");
        let advice = "Messages reach this process only until it is back; it is tried again.";
        Warning::new(Tone::Bad, what, advice, "bus.md")
    });
    warnings.collect()
}

#[cfg(feature = "cluster")]
fn clusters(status: &Status) -> Vec<Warning> {
    let away = status
        .clusters
        .iter()
        .filter(|cluster| !cluster.is_connected);
    let warnings = away.map(|cluster| {
        let what = format!("Node {} has no connection to NATS.", cluster.node);
        let advice = "Asks of other nodes fail until it is back; it is tried again.";
        Warning::new(Tone::Bad, what, advice, "cluster.md")
    });
    warnings.collect()
}

#[cfg(feature = "psgi")]
fn perl(status: &Status) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for gateway in &status.psgi {
        let (name, wanted) = (&gateway.application, gateway.workers_wanted);
        let ready = super::perl::ready(gateway);
        if ready < wanted {
            let what = format!("{name} has {ready} of {wanted} workers.");
            let advice =
                "Workers start, are replaced, or cannot load the application: see the log.";
            let tone = if ready == 0 { Tone::Bad } else { Tone::Warn };
            warnings.push(Warning::new(tone, what, advice, "psgi.md"));
        }
        if gateway.queue.is_standing {
            let wait = micros(gateway.queue.predicted_wait_micros);
            let what =
                format!("The workers of {name} are full: a new request would wait for {wait}.");
            let advice = "More workers, or a faster route; whoever has used most is refused.";
            warnings.push(Warning::new(Tone::Bad, what, advice, "psgi.md"));
        }
    }
    warnings
}

#[cfg(feature = "proxy")]
fn upstreams(status: &Status) -> Vec<Warning> {
    use greenroom_proxy::UpstreamState;

    let upstreams = status.proxies.iter().flat_map(|proxy| &proxy.upstreams);
    let resting = upstreams.filter(|upstream| upstream.state == UpstreamState::Resting);
    let warnings = resting.map(|upstream| {
        let what = format!(
            "The upstream {} rests: it has failed too often.",
            upstream.address
        );
        let advice = "It is tried again by itself; see whether it runs, and its log.";
        Warning::new(Tone::Bad, what, advice, "reverse-proxy.md")
    });
    warnings.collect()
}

#[cfg(any(feature = "tls", feature = "tls-ring"))]
fn certificates(status: &Status, now: i64) -> Vec<Warning> {
    use super::certificates::{SOON_SECONDS, names};
    use super::format::seconds;

    let warnings = status.certificates.iter().filter_map(|certificate| {
        let names = names(certificate);
        let left = certificate
            .expires_unix_seconds
            .map(|expires| expires - now);
        let (tone, what) = match left {
            None => (Tone::Bad, format!("There is no certificate for {names}.")),
            Some(..0) => (
                Tone::Bad,
                format!("The certificate for {names} has expired."),
            ),
            Some(left @ ..SOON_SECONDS) => {
                let left = seconds(left.unsigned_abs());
                (
                    Tone::Warn,
                    format!("The certificate for {names} ends in {left}."),
                )
            }
            Some(_) => return None,
        };
        let advice = "Renew it, and reload (SIGHUP); of one that comes by itself, the log tells \
                      why it does not.";
        Some(Warning::new(tone, what, advice, "certificates.md"))
    });
    warnings.collect()
}

/// Warns of the last upgrade, if the next version does not serve.
fn upgrade(status: &Status, now: i64) -> Option<Warning> {
    let last = status.upgrades.as_ref()?.records.first()?;
    let reason = last.reason.as_deref()?.lines().next().unwrap_or_default();
    let ago = super::upgrades::ago(last.begun_unix_seconds, now);
    let (tone, what, advice, page) = match last.result {
        UpgradeResult::Failed => (
            Tone::Bad,
            format!("The upgrade of {ago} failed: {reason}."),
            "This version serves on, and no request was lost. Mend the next one, and upgrade \
             again.",
            "upgrades.md#when-the-next-version-does-not-start",
        ),
        UpgradeResult::Refused => (
            Tone::Warn,
            format!("The upgrade of {ago} was not begun: {reason}."),
            "Upgrades, below, says which way next versions come.",
            "upgrades.md#when-the-next-version-does-not-start",
        ),
        _ => return None,
    };
    Some(Warning::new(tone, what, advice, page))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_in_book;

    #[test]
    fn the_pages_of_warnings_are_in_the_book() {
        let source = include_str!("attention.rs");
        let (code, _) = source.split_once("mod tests").expect("it has tests");
        let named = code.split('"').filter(|text| text.contains(".md"));
        let named: Vec<_> = named.collect();
        assert!(named.len() >= 8, "{named:?}");
        named.into_iter().for_each(assert_in_book);
    }
}
