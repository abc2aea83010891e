//! The server's processes on this machine.

mod listener;
mod member;
mod reading;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity};

use self::member::{Member, Sums};
use self::reading::Reading;
use crate::plan::Target;

/// The processes of a server on this machine.
///
/// They are looked up again at each sample: the roots, their descendants, and processes that once
/// were descendants, even if the parent has gone since. This program itself is never one of them.
///
/// A sample of a server with one process took 0.25 ms in an unoptimised build, beside 128 other
/// processes.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The root processes, with their start times, so that a reused number is not taken for them.
    roots: Vec<(i32, u64)>,
    members: BTreeMap<i32, Member>,
    /// Processes that were there at the last sample, and need no new look.
    known: HashSet<i32>,
    ended: Sums,
    sampled: Option<Sampled>,
}

/// Values that all samples have in common.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    first: Instant,
    last: Instant,
    rss_bytes_max: u64,
    threads_max: u32,
    processes: u32,
    cores: u32,
    cores_shared: u32,
}

/// The CPU time and memory of a server's processes between two moments.
///
/// CPU time comes from the scheduler's own account of each thread (`/proc/PID/task/TID/schedstat`),
/// to the nanosecond. A thread that ends takes its account with it, and so does a process; their
/// use since the last sample is then known from the kernel's sums of whole processes and of
/// children waited for (`/proc/PID/stat`), which count to 10 ms. The same sums divide the time into
/// user and system, which says little below 200 ms; without a tick it is half and half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerUsage {
    /// Time from the first sample to the last.
    pub elapsed: Duration,
    /// Number of its processes at the end.
    pub processes: u32,
    /// CPU time in user mode, all processes together.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Time in which its threads could have run, but others had the cores; those of the server
    /// among themselves included.
    pub waited: Duration,
    /// CPU time of the thread that used most, of those that were there at two samples.
    pub busiest_thread: Duration,
    /// Cores on which at least one of its threads may run; 0 when that is not known.
    pub cores: u32,
    /// Of these cores, those on which the thread that took the samples may run as well.
    pub cores_shared: u32,
    /// The most resident memory that was seen, bytes, all processes together; what they share is
    /// counted for each.
    pub rss_bytes_max: u64,
    /// The most threads that were seen, all processes together.
    pub threads_max: u32,
}

impl ServerUsage {
    /// Returns the CPU time in cores: 1.0 is a whole core all the time.
    #[must_use]
    pub fn cores_used(&self) -> f64 {
        (self.user + self.system).as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the share of the time in which its busiest thread ran, from 0 to 1.
    #[must_use]
    pub fn busiest_share(&self) -> f64 {
        self.busiest_thread.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Processes {
    /// Returns the process with this number, its children, and theirs; `None` when there is no such
    /// process, it may not be seen, or it is this program.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::rooted_in([i32::try_from(pid).ok()?])
    }

    /// Returns the processes that listen where `targets` point, with their children; `None` when
    /// one of these is another machine, or its processes may not be seen: what the others use is
    /// not for all requests.
    ///
    /// A name is resolved, which may take as long as the resolver's time-out.
    #[must_use]
    pub fn listening<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Option<Self> {
        let mut places: Vec<_> = targets.into_iter().map(|target| &target.place).collect();
        places.dedup();
        let mut owners = BTreeSet::new();
        for place in places {
            let of_place = listener::owners(place);
            if of_place.is_empty() {
                return None;
            }
            owners.extend(of_place);
        }
        Self::rooted_in(owners)
    }

    fn rooted_in(pids: impl IntoIterator<Item = i32>) -> Option<Self> {
        let roots: Vec<_> = pids
            .into_iter()
            .filter(|pid| *pid != reading::own_pid())
            .filter_map(|pid| Some((pid, reading::start_of(pid)?)))
            .collect();
        (!roots.is_empty()).then(|| Self {
            roots,
            members: BTreeMap::new(),
            known: HashSet::new(),
            ended: Sums::default(),
            sampled: None,
        })
    }

    /// Returns the numbers of the processes that were there at the last sample, in ascending order.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.keys().map(|pid| pid.unsigned_abs())
    }

    /// Takes a sample; usage counts from the first.
    pub fn sample(&mut self) {
        let now = Instant::now();
        self.look_for_more();
        let mut cores = CpuSet::new();
        let (mut rss_bytes, mut threads, mut processes) = (0, 0, 0);
        for (pid, mut member) in std::mem::take(&mut self.members) {
            match Reading::of(pid).filter(|reading| reading.started == member.started()) {
                Some(reading) => {
                    rss_bytes += reading.rss_bytes;
                    threads += reading.thread_count();
                    processes += u32::from(!reading.is_zombie);
                    reading.add_cores_to(&mut cores);
                    member.update(&reading);
                    self.members.insert(pid, member);
                }
                None => self.ended.add(&member),
            }
        }
        let before = self.sampled;
        self.sampled = Some(Sampled {
            first: before.map_or(now, |sampled| sampled.first),
            last: now,
            rss_bytes_max: before.map_or(0, |one| one.rss_bytes_max).max(rss_bytes),
            threads_max: before.map_or(0, |one| one.threads_max).max(threads),
            processes,
            cores: cores.count(),
            cores_shared: shared_with_this_thread(&cores),
        });
    }

    /// Finds processes that began since the last sample. At the first sample all CPU time so far is
    /// from before; processes found later began later, and all their time counts.
    fn look_for_more(&mut self) {
        let all = reading::all_pids();
        let mut new: Vec<(i32, i32, u64)> = all
            .iter()
            .filter(|pid| !self.known.contains(pid) && **pid != reading::own_pid())
            .filter_map(|pid| reading::parent_and_start_of(*pid))
            .collect();
        self.known = all;
        loop {
            let (found, others): (Vec<_>, Vec<_>) = new
                .into_iter()
                .partition(|(pid, parent, started)| self.is_ours(*pid, *parent, *started));
            if found.is_empty() {
                break;
            }
            for (pid, _, started) in found {
                self.join(pid, started);
            }
            new = others;
        }
    }

    fn is_ours(&self, pid: i32, parent: i32, started: u64) -> bool {
        self.members.contains_key(&parent) || self.roots.contains(&(pid, started))
    }

    fn join(&mut self, pid: i32, started: u64) {
        let member = if self.sampled.is_some() {
            Some(Member::born(started))
        } else {
            Reading::of(pid).as_ref().map(Member::found)
        };
        if let Some(member) = member {
            self.members.insert(pid, member);
        }
    }

    /// Returns the use between the first sample and the last; all zero with less than two.
    #[must_use]
    pub fn usage(&self) -> ServerUsage {
        let Some(sampled) = self.sampled else {
            return ServerUsage::default();
        };
        let mut all = self.ended;
        let live = all.add_live(self.members.values());
        let total = live + all.of_ended();
        let user = total.mul_f64(all.user_share());
        ServerUsage {
            elapsed: sampled.last - sampled.first,
            processes: sampled.processes,
            user,
            system: total.saturating_sub(user),
            waited: all.waited(),
            busiest_thread: all.busiest_thread(),
            cores: sampled.cores,
            cores_shared: sampled.cores_shared,
            rss_bytes_max: sampled.rss_bytes_max,
            threads_max: sampled.threads_max,
        }
    }
}

fn shared_with_this_thread(cores: &CpuSet) -> u32 {
    let Ok(ours) = sched_getaffinity(None) else {
        return 0;
    };
    let shared = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core) && ours.is_set(*core));
    u32::try_from(shared.count()).unwrap_or(u32::MAX)
}
