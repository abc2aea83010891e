//! The cores that the server and its load run on.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores of this machine, at least one. Written as the kernel does: `0-2,5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(BTreeSet<usize>);

/// An error in a choice of cores.
#[derive(Debug, thiserror::Error)]
pub enum CoresError {
    /// The text has another form.
    #[error("{0:?} is no list of cores from 0 to {max}, such as 0-2,5", max = CpuSet::MAX_CPU - 1)]
    Form(String),
    /// The program may not run there.
    #[error("this program may run on cores {available}, not on all of {asked}")]
    Unavailable {
        /// The requested cores.
        asked: Cores,
        /// The available cores.
        available: Cores,
    },
    /// The kernel's error.
    #[error("cannot choose cores: {0}")]
    System(#[from] rustix::io::Errno),
}

impl Cores {
    /// Returns the cores that the calling thread may run on.
    ///
    /// # Errors
    /// [`CoresError::System`] when the kernel does not tell.
    pub fn available() -> Result<Self, CoresError> {
        let set = sched_getaffinity(None)?;
        let all = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
        Ok(Self(all.collect()))
    }

    pub(super) fn overlap(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        for core in &self.0 {
            set.set(*core);
        }
        set
    }

    fn without(&self, other: &Self) -> Option<Self> {
        let rest: BTreeSet<_> = self.0.difference(&other.0).copied().collect();
        (!rest.is_empty()).then_some(Self(rest))
    }

    fn last(&self) -> Self {
        Self(self.0.last().copied().into_iter().collect())
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&names.join(","))
    }
}

impl FromStr for Cores {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<Self, CoresError> {
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let ranges = ranges.ok_or_else(|| CoresError::Form(text.to_owned()))?;
        Ok(Self(ranges.into_iter().flatten().collect()))
    }
}

fn range(text: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < CpuSet::MAX_CPU).then_some(first..=last)
}

/// The cores of the server and of the load; `None` leaves them to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) server: Option<Cores>,
    pub(super) load: Option<Cores>,
}

/// Divides the cores that there are. What is asked for is kept; the other side gets the rest, or
/// all when nothing rests. By default the load has the last core and the server all others; a
/// single core is left to both.
pub(super) fn split(
    available: &Cores,
    server: Option<&Cores>,
    load: Option<&Cores>,
) -> Result<Split, CoresError> {
    for asked in [server, load].into_iter().flatten() {
        if !asked.0.is_subset(&available.0) {
            return Err(CoresError::Unavailable {
                asked: asked.clone(),
                available: available.clone(),
            });
        }
    }
    if (server, load) == (None, None) && available.0.len() == 1 {
        return Ok(Split {
            server: None,
            load: None,
        });
    }
    let rest = |taken: &Cores| {
        available
            .without(taken)
            .unwrap_or_else(|| available.clone())
    };
    let last = available.last();
    let load = load.map_or_else(|| server.map_or(last, rest), Clone::clone);
    let server = server.map_or_else(|| rest(&load), Clone::clone);
    Ok(Split {
        server: Some(server),
        load: Some(load),
    })
}

/// Keeps the calling thread, and what it starts, on some cores until it is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Keeps the calling thread on these cores; `None` changes nothing.
    ///
    /// # Errors
    /// [`CoresError`] when the kernel denies them.
    pub fn to(cores: Option<&Cores>) -> Result<Self, CoresError> {
        let Some(cores) = cores else {
            return Ok(Self { before: None });
        };
        let before = sched_getaffinity(None)?;
        sched_setaffinity(None, &cores.set())?;
        Ok(Self {
            before: Some(before),
        })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // These cores were allowed before; a drop has no way to report that they are no more.
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(text: &str) -> Cores {
        text.parse().expect("a list of cores")
    }

    fn divided(available: &str, server: Option<&str>, load: Option<&str>) -> [String; 2] {
        let (server, load) = (server.map(cores), load.map(cores));
        let split = split(&cores(available), server.as_ref(), load.as_ref()).expect("available");
        [split.server, split.load].map(|side| side.map_or("any".into(), |cores| cores.to_string()))
    }

    #[test]
    fn the_load_gets_the_last_core() {
        assert_eq!(divided("0-3", None, None), ["0,1,2", "3"]);
        assert_eq!(divided("0", None, None), ["any", "any"]);
    }

    #[test]
    fn what_is_asked_for_is_kept() {
        assert_eq!(divided("0-3", Some("0"), None), ["0", "1,2,3"]);
        assert_eq!(divided("0-3", None, Some("0,1")), ["2,3", "0,1"]);
        assert_eq!(divided("0-1", Some("0-1"), None), ["0,1", "0,1"]);
        assert_eq!(divided("0-1", Some("0"), Some("0")), ["0", "0"]);
        let (available, asked) = (cores("0-1"), cores("1-2"));
        let error = split(&available, Some(&asked), None).expect_err("there is no core 2");
        assert!(error.to_string().contains("not on all of 1,2"), "{error}");
    }

    #[test]
    fn what_is_no_list_is_reported() {
        for text in ["", "a", "2-1", "0,", "99999", "-1"] {
            assert!(text.parse::<Cores>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_thread_gets_its_cores_back() {
        let before = Cores::available().expect("some");
        let last = before.last();
        let pinned = Pinned::to(Some(&last)).expect("allowed");
        assert_eq!(Cores::available().expect("some"), last);
        drop(pinned);
        assert_eq!(Cores::available().expect("some"), before);
    }
}
