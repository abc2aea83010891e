//! Comparison of transcripts, and of their differences with the list.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::server::Kind;
use super::talk::transcript;
use super::{Case, Log};
use crate::differences::{Seen, differences};

/// The most cases that are tried at once.
const AT_ONCE_MAX: usize = 8;
/// The most tries of a case before its faults are reported.
const TRIES_MAX: u32 = 3;

/// Lines of one transcript in the place of lines of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Hunk {
    axum: Log,
    ours: Log,
}

/// The faults that the test of a group reports.
#[derive(Default)]
struct Faults {
    /// Differences that are not listed, with the names of the cases, and their logs of axum.
    unlisted: BTreeMap<Hunk, BTreeMap<&'static str, Log>>,
    /// Listed differences that do not occur.
    stale: Vec<(&'static str, &'static Seen)>,
}

/// Returns the listed differences, each with the name of its case.
pub(crate) fn listed() -> impl Iterator<Item = (&'static str, &'static Seen)> {
    let seen = differences().flat_map(|difference| difference.seen);
    seen.flat_map(|seen| seen.cases.iter().map(move |case| (*case, seen)))
}

/// Fails if a case differs in a way that is not listed, or does not in one that is.
pub(crate) async fn check(cases: Vec<Case>) {
    let places = Arc::new(Semaphore::new(AT_ONCE_MAX));
    let mut under_way = JoinSet::new();
    for case in cases {
        let places = Arc::clone(&places);
        under_way.spawn(async move {
            let _place = places.acquire().await;
            lasting_faults(&case).await
        });
    }
    let mut found = Faults::default();
    while let Some(faults) = under_way.join_next().await {
        let faults = faults.unwrap();
        found.stale.extend(faults.stale);
        for (hunk, cases) in faults.unlisted {
            found.unlisted.entry(hunk).or_default().extend(cases);
        }
    }
    let is_as_listed = found.unlisted.is_empty() && found.stale.is_empty();
    assert!(is_as_listed, "{found}");
}

/// Returns the faults of a case that occur in every try. On a busy machine the client's next action
/// may overtake either server; real differences occur each time.
async fn lasting_faults(case: &Case) -> Faults {
    let mut found = faults(case).await;
    for _ in 1..TRIES_MAX {
        if found.unlisted.is_empty() && found.stale.is_empty() {
            break;
        }
        found = faults(case).await;
    }
    found
}

async fn faults(case: &Case) -> Faults {
    let (axum, staged, on_loops) = tokio::join!(
        transcript(case, Kind::Axum),
        transcript(case, Kind::Greenroom),
        transcript(case, Kind::OnLoops),
    );
    let entries: Vec<_> = listed().filter(|(name, _)| *name == case.name).collect();
    let mut differ = vec![false; entries.len()];
    let mut faults = Faults::default();
    for hunk in [&staged, &on_loops]
        .into_iter()
        .flat_map(|ours| hunks(&axum, ours))
    {
        let mut is_listed = false;
        for ((_, entry), differs) in entries.iter().zip(&mut differ) {
            let is_this = hunk.axum == entry.axum && hunk.ours == entry.ours;
            *differs |= is_this;
            is_listed |= is_this;
        }
        if !is_listed {
            let cases = faults.unlisted.entry(hunk).or_default();
            cases.insert(case.name, axum.clone());
        }
    }
    let entries = entries.into_iter().zip(differ);
    let stale = entries.filter(|(_, differs)| !differs);
    faults.stale = stale.map(|(entry, _)| entry).collect();
    faults
}

impl Display for Faults {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (hunk, cases) in &self.unlisted {
            let names: Vec<_> = cases.keys().collect();
            let Hunk { axum, ours } = hunk;
            writeln!(formatter, "\nnot listed:")?;
            writeln!(
                formatter,
                "Seen {{ cases: &{names:?}, axum: &{axum:?}, ours: &{ours:?} }},"
            )?;
        }
        for (case, seen) in &self.stale {
            writeln!(
                formatter,
                "\n{case} does not differ any more as in {seen:?}"
            )?;
        }
        let transcripts = self.unlisted.values().flatten().collect::<BTreeMap<_, _>>();
        for (case, axum) in transcripts {
            writeln!(formatter, "\n{case} on axum:\n  {}", axum.join("\n  "))?;
        }
        Ok(())
    }
}

/// Returns the lines in which `ours` differs from `axum`, by the longest common subsequence of
/// both.
fn hunks(axum: &Log, ours: &Log) -> Vec<Hunk> {
    let lengths = common_lengths(axum, ours);
    let (mut at, mut to) = (0, 0);
    let mut hunks = Vec::new();
    let mut hunk = Hunk::default();
    while at < axum.len() || to < ours.len() {
        if at < axum.len() && to < ours.len() && axum[at] == ours[to] {
            hunks.push(std::mem::take(&mut hunk));
            (at, to) = (at + 1, to + 1);
        } else if to == ours.len() || at < axum.len() && lengths[at + 1][to] >= lengths[at][to + 1]
        {
            hunk.axum.push(axum[at].clone());
            at += 1;
        } else {
            hunk.ours.push(ours[to].clone());
            to += 1;
        }
    }
    hunks.push(hunk);
    hunks.retain(|hunk| *hunk != Hunk::default());
    hunks
}

/// Returns the number of common lines of the transcripts from each pair of places on.
fn common_lengths(axum: &Log, ours: &Log) -> Vec<Vec<usize>> {
    let mut lengths = vec![vec![0; ours.len() + 1]; axum.len() + 1];
    for at in (0..axum.len()).rev() {
        for to in (0..ours.len()).rev() {
            lengths[at][to] = if axum[at] == ours[to] {
                lengths[at + 1][to + 1] + 1
            } else {
                lengths[at + 1][to].max(lengths[at][to + 1])
            };
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> Log {
        text.chars().map(String::from).collect()
    }

    #[test]
    fn hunks_are_what_stands_between_common_lines() {
        assert_eq!(hunks(&log("abc"), &log("abc")), []);
        let found = hunks(&log("abcdef"), &log("aXcdYZf"));
        let texts: Vec<_> = found
            .iter()
            .map(|hunk| (hunk.axum.concat(), hunk.ours.concat()))
            .collect();
        let expected = [("b", "X"), ("e", "YZ")];
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        for (text, expected) in texts.iter().zip(expected) {
            assert_eq!((text.0.as_str(), text.1.as_str()), expected);
        }
    }

    #[test]
    fn a_transcript_that_ends_early_differs() {
        let found = hunks(&log("ab"), &log("a"));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].axum.concat(), found[0].ours.concat()),
            ("b".into(), String::new())
        );
    }
}
