//! A server of several processes, and their CPU time.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::ensure;

use super::cpu::CpuReading;

/// A process and its place in the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its process number.
    pub pid: u32,
    /// 0 for the first process, 1 for those that it started, and so on.
    pub depth: usize,
}

/// The counters of a whole family at one moment.
#[derive(Clone, Debug)]
pub struct FamilyReading {
    first: u32,
    by_pid: BTreeMap<u32, CpuReading>,
}

/// The CPU time of a family between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct FamilyTime {
    /// Time on a core, of the first process.
    pub first: Duration,
    /// Time on a core, of all others.
    pub others: Duration,
    /// Time in which one could have run but another program had the core, of all.
    pub waited: Duration,
}

/// Returns a process and all its descendants; parents before their children.
#[must_use]
pub fn family(first: u32) -> Vec<Member> {
    let mut members = vec![Member {
        pid: first,
        depth: 0,
    }];
    let mut next = 0;
    while let Some(&Member { pid, depth }) = members.get(next) {
        let children = children(pid).into_iter();
        members.extend(children.map(|pid| Member {
            pid,
            depth: depth + 1,
        }));
        next += 1;
    }
    members
}

/// Returns the children of every thread, by which the kernel keeps them; none of a process that is
/// gone.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let listed: Vec<String> = listed.collect();
    let pids = listed.iter().flat_map(|pids| pids.split_ascii_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

impl FamilyReading {
    /// Reads the counters of all live processes.
    ///
    /// # Errors
    /// If one ends meanwhile.
    pub fn now(first: u32) -> anyhow::Result<Self> {
        let mut by_pid = BTreeMap::new();
        for member in family(first) {
            by_pid.insert(member.pid, CpuReading::now(member.pid)?);
        }
        Ok(Self { first, by_pid })
    }

    /// Returns the time used from this reading to a later one.
    ///
    /// # Errors
    /// If a process has ended since: its time is not known.
    pub fn until(&self, later: &Self) -> anyhow::Result<FamilyTime> {
        let gone = self
            .by_pid
            .keys()
            .find(|pid| !later.by_pid.contains_key(pid));
        ensure!(
            gone.is_none(),
            "process {gone:?} of the server ended under load"
        );
        let mut used = FamilyTime::default();
        for (pid, reading) in &later.by_pid {
            let before = self.by_pid.get(pid).copied().unwrap_or_default();
            let time = before.until(*reading);
            used.waited += time.waited;
            if *pid == self.first {
                used.first += time.total;
            } else {
                used.others += time.total;
            }
        }
        Ok(used)
    }
}

impl FamilyTime {
    /// Returns the time on a core of all processes.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.first + self.others
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn grandchildren_are_of_the_family() {
        // Each shell prints a line when it runs, and then waits for the end of its input.
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'sh -c \"echo; read line\"; exit'; exit"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be run");
        let mut said = [0];
        let mut stdout = shell.stdout.take().expect("it is a pipe");
        stdout.read_exact(&mut said).expect("it says a line");
        let members = family(shell.id());
        let read = FamilyReading::now(shell.id()).expect("all are there");
        drop(shell.stdin.take());
        shell.wait().expect("it ends when its input does");
        let depths: Vec<usize> = members.iter().map(|member| member.depth).collect();
        assert_eq!(depths, [0, 1, 2]);
        assert_eq!(members[0].pid, shell.id());
        assert_eq!(read.by_pid.len(), 3);
    }
}
