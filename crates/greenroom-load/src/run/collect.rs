//! Starts the threads that make load, and gathers what they note.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use super::{
    Clock, Ending, Endpoint, Measurement, Progress, RunError, Share, Stop, StreamMeasurement,
    resolve,
};
use crate::plan::{Plan, Protocol, StreamPlan};
use crate::record::{Batch, FirstAnswer, Notebook, Recorder, RequestRecord, Tally, Timeline};
use crate::verdict::{Processes, ThreadUsage};
use crate::{http1, session};

/// Intervals that wait to be gathered, of each thread.
const BATCHES_WAITING: usize = 4;

/// Carries out a plan; returns when every request ended, or when `stop` says so.
///
/// `progress` is told once in an interval of each stream. The server's processes are looked at as often.
///
/// # Errors
/// [`RunError`] when the plan contradicts itself, a name has no address, or the system refuses what a run needs.
pub fn run(
    plan: &Plan,
    mut server: Option<Processes>,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Measurement, RunError> {
    let endpoints = plan.streams.iter().map(resolve::endpoints);
    let endpoints: Vec<_> = endpoints.collect::<Result<_, _>>()?;
    let (full, batches) = sync_channel(BATCHES_WAITING * threads(plan));
    let mut gathering = Gathering::new(plan);
    let started = SystemTime::now();
    if let Some(server) = &mut server {
        server.sample();
    }
    let clock = Clock::start();
    let begin = Begin {
        plan,
        clock,
        stop,
        full,
    };
    let running = begin.threads(&endpoints, &mut gathering)?;
    for batch in batches {
        if let Some(server) = server.as_mut().filter(|_| batch.stream == 0) {
            server.sample();
        }
        gathering.take(batch, progress);
    }
    let endings = join(running)?;
    if let Some(server) = &mut server {
        server.sample();
    }
    let is_stopped = stop.is_stopped();
    Ok(Measurement {
        started,
        elapsed: Duration::from_nanos(if is_stopped {
            clock.now()
        } else {
            endings
                .iter()
                .map(|end| end.ending.last_ns)
                .max()
                .unwrap_or(0)
        }),
        interrupted: is_stopped,
        gave_up: endings.iter().any(|end| end.ending.gave_up),
        generator: endings.iter().map(|end| end.usage).collect(),
        server: server.map(|server| server.usage()),
        streams: gathering.finish(plan, &endings),
    })
}

fn threads(plan: &Plan) -> usize {
    let threads = plan.streams.iter().map(|stream| stream.threads.max(1));
    usize::try_from(threads.sum::<u32>()).unwrap_or(usize::MAX)
}

/// What every thread of a run begins with.
struct Begin<'a> {
    plan: &'a Plan,
    clock: Clock,
    stop: &'a Stop,
    full: SyncSender<Batch>,
}

/// A thread's end.
struct Ended {
    ending: Ending,
    usage: ThreadUsage,
}

type Running = JoinHandle<io::Result<Ended>>;

impl Begin<'_> {
    fn threads(
        self,
        endpoints: &[Vec<Endpoint>],
        gathering: &mut Gathering,
    ) -> Result<Vec<Running>, RunError> {
        let mut running = Vec::new();
        for (stream, (plan, endpoints)) in self.plan.streams.iter().zip(endpoints).enumerate() {
            for index in 0..plan.threads.max(1) {
                let (give_back, empty) = sync_channel(BATCHES_WAITING);
                gathering.streams[stream]
                    .threads
                    .push(GatheredThread::new(give_back));
                let recorder = self.recorder(stream, index, plan, empty);
                let share = Share::of(plan, index, self.clock, self.stop.clone());
                let started = start(stream, share, endpoints.clone(), recorder);
                running.push(started.map_err(|source| RunError::System {
                    what: "cannot start a thread",
                    source,
                })?);
            }
        }
        Ok(running)
    }

    fn recorder(
        &self,
        stream: usize,
        index: u32,
        plan: &StreamPlan,
        empty: Receiver<Box<Tally>>,
    ) -> Recorder {
        Recorder::new(Notebook {
            stream,
            thread: usize::try_from(index).unwrap_or(usize::MAX),
            interval_ns: u64::try_from(self.plan.interval.as_nanos()).unwrap_or(u64::MAX),
            records_max: plan.records_max,
            variable_length: plan.variable_length,
            full: self.full.clone(),
            empty,
        })
    }
}

fn start(
    stream: usize,
    share: Share,
    endpoints: Vec<Endpoint>,
    recorder: Recorder,
) -> io::Result<Running> {
    let name = format!("load-{stream}-{}", share.index);
    thread::Builder::new().name(name).spawn(move || {
        // Timers then fire when they are due, not up to 50 us later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let begun = share.clock.now();
        let waited = ThreadUsage::waited_by_this_thread();
        let ending = match share.plan.protocol {
            Protocol::Http1 => http1::work(&share, &endpoints, recorder)?,
            Protocol::Http2 | Protocol::WebSocket => {
                session::work(share.clone(), endpoints, recorder)
            }
        };
        let (user, system) = ThreadUsage::of_this_thread();
        let elapsed = Duration::from_nanos(share.clock.now() - begun);
        let usage = ThreadUsage {
            stream,
            user,
            system,
            waited: ThreadUsage::waited_by_this_thread().saturating_sub(waited),
            elapsed,
        };
        Ok(Ended { ending, usage })
    })
}

fn join(running: Vec<Running>) -> Result<Vec<Ended>, RunError> {
    let join = |thread: Running| match thread.join() {
        Ok(ended) => ended.map_err(|source| RunError::System {
            what: "a thread that makes load failed",
            source,
        }),
        Err(panic) => std::panic::resume_unwind(panic),
    };
    running.into_iter().map(join).collect()
}

/// What has been gathered of all streams.
struct Gathering {
    streams: Vec<Gathered>,
}

/// What has been gathered of one stream.
struct Gathered {
    tally: Tally,
    timeline: Timeline,
    first: Option<FirstAnswer>,
    records: Vec<RequestRecord>,
    threads: Vec<GatheredThread>,
}

/// Intervals of one thread that wait for the same interval of the others.
struct GatheredThread {
    waiting: VecDeque<Batch>,
    give_back: SyncSender<Box<Tally>>,
}

impl GatheredThread {
    fn new(give_back: SyncSender<Box<Tally>>) -> Self {
        Self {
            waiting: VecDeque::new(),
            give_back,
        }
    }
}

impl Gathering {
    fn new(plan: &Plan) -> Self {
        let gathered = |_: &StreamPlan| Gathered {
            tally: Tally::default(),
            timeline: Timeline::new(plan.interval),
            first: None,
            records: Vec::new(),
            threads: Vec::new(),
        };
        Self {
            streams: plan.streams.iter().map(gathered).collect(),
        }
    }

    fn take(&mut self, mut batch: Batch, progress: &mut dyn FnMut(&Progress<'_>)) {
        let stream = batch.stream;
        let gathered = &mut self.streams[stream];
        if let Some(first) = batch.first.take() {
            gathered.first.get_or_insert(*first);
        }
        gathered.records.append(&mut batch.records);
        gathered.threads[batch.thread].waiting.push_back(batch);
        if gathered
            .threads
            .iter()
            .all(|thread| !thread.waiting.is_empty())
        {
            gathered.interval(stream, progress);
        }
    }

    fn finish(self, plan: &Plan, endings: &[Ended]) -> Vec<StreamMeasurement> {
        let streams = self.streams.into_iter().zip(&plan.streams).enumerate();
        let finished = streams.map(|(number, (mut gathered, plan))| {
            while gathered
                .threads
                .iter()
                .any(|thread| !thread.waiting.is_empty())
            {
                gathered.interval(number, &mut |_| {});
            }
            let mine = || endings.iter().filter(|end| end.usage.stream == number);
            let last_ns = mine().map(|end| end.ending.last_ns).max().unwrap_or(0);
            StreamMeasurement {
                plan: plan.clone(),
                elapsed: Duration::from_nanos(last_ns),
                tally: gathered.tally,
                timeline: gathered.timeline,
                first: gathered.first,
                records: gathered.records,
                unfinished: mine().map(|end| end.ending.unfinished).sum(),
            }
        });
        finished.collect()
    }
}

impl Gathered {
    /// Puts the oldest interval of each thread together.
    fn interval(&mut self, stream: usize, progress: &mut dyn FnMut(&Progress<'_>)) {
        let oldest = self.threads.iter_mut().enumerate();
        let mut batches: Vec<_> = oldest
            .filter_map(|(index, thread)| Some((index, thread.waiting.pop_front()?)))
            .collect();
        let Some((_, mut sum)) = batches.pop() else {
            return;
        };
        for (index, mut batch) in batches {
            sum.tally.add(&batch.tally);
            sum.begin_ns = sum.begin_ns.min(batch.begin_ns);
            sum.end_ns = sum.end_ns.max(batch.end_ns);
            batch.tally.clear();
            let _ = self.threads[index].give_back.try_send(batch.tally);
        }
        let begin = Duration::from_nanos(sum.begin_ns);
        let elapsed = Duration::from_nanos(sum.end_ns);
        let length = elapsed.saturating_sub(begin);
        self.tally.add(&sum.tally);
        self.timeline.push(begin, length, &sum.tally);
        // What is left at the end may be too short to have a rate.
        if length < self.timeline.interval() / 2 {
            sum.tally.clear();
            return;
        }
        progress(&Progress {
            stream,
            elapsed,
            length,
            interval: &sum.tally,
            sent: self.tally.counts.sent,
            ended: self.tally.ended(),
        });
        sum.tally.clear();
        let _ = self.threads[sum.thread].give_back.try_send(sum.tally);
    }
}
