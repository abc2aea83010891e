//! Starts the threads that make load, and collects their measurements.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use super::{
    Clock, Ending, Endpoint, Measurement, PathTurns, Progress, RunError, Share, Stop,
    StreamMeasurement, resolve,
};
use crate::plan::{Plan, Protocol, StreamPlan};
use crate::record::{
    Batch, ByRate, FirstResponse, Recorder, RecorderSettings, RequestRecord, Tally, Timeline,
};
use crate::verdict::{Processes, ThreadUsage};
use crate::{http1, session};

/// Intervals that wait for collection, of each thread.
const BATCHES_WAITING: usize = 4;

/// Carries out a plan; returns when every request ended, or when `stop` is set.
///
/// `progress` is called once in an interval of each stream. The server's processes are sampled as
/// often.
///
/// # Errors
/// [`RunError`] when the plan contradicts itself, a name has no address, or the system denies what
/// a run needs; a run that has begun then ends, and sets `stop`.
pub fn run(
    plan: &Plan,
    mut server: Option<Processes>,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Measurement, RunError> {
    check(plan)?;
    let endpoints = plan.streams.iter().map(resolve::endpoints);
    let endpoints: Vec<_> = endpoints.collect::<Result<_, _>>()?;
    let (full, batches) = sync_channel(BATCHES_WAITING * threads(plan));
    let mut gathering = Gathering::new(plan);
    let started = SystemTime::now();
    if let Some(server) = &mut server {
        server.sample();
    }
    let shares = shares(plan, &endpoints, &full, &mut gathering);
    drop(full);
    let clock = Clock::start();
    let running = begin(shares, clock, stop)?;
    for batch in batches {
        // Once in an interval: a sample of a server with many threads takes long.
        let is_first = batch.stream == 0 && batch.thread == gathering.first_running();
        if let Some(server) = server.as_mut().filter(|_| is_first) {
            server.sample();
        }
        gathering.take(batch, progress);
    }
    let endings = join(running)?;
    if let Some(server) = &mut server {
        server.sample();
    }
    let is_stopped = stop.is_stopped();
    let stopped = is_stopped.then(|| Duration::from_nanos(clock.now()));
    let streams = gathering.finish(plan, &endings, stopped);
    Ok(Measurement {
        started,
        elapsed: streams
            .iter()
            .map(|stream| stream.elapsed)
            .max()
            .unwrap_or_default(),
        interrupted: is_stopped,
        gave_up: endings.iter().any(|end| end.ending.gave_up),
        generator: endings.iter().map(|end| end.usage).collect(),
        server: server.map(|server| server.usage()),
        streams,
    })
}

fn check(plan: &Plan) -> Result<(), RunError> {
    if plan.streams.is_empty() {
        return Err(RunError::Plan("a plan needs a stream".to_owned()));
    }
    if plan.interval.is_zero() {
        let text = "the interval of progress reports must be longer than 0";
        return Err(RunError::Plan(text.to_owned()));
    }
    Ok(())
}

fn threads(plan: &Plan) -> usize {
    plan.streams.iter().map(threads_of).sum()
}

fn threads_of(stream: &StreamPlan) -> usize {
    usize::try_from(stream.threads.max(1)).unwrap_or(usize::MAX)
}

/// The input of a thread; made before the clock starts, as histograms take a while.
struct ThreadInput {
    stream: usize,
    index: u32,
    plan: StreamPlan,
    endpoints: Vec<Endpoint>,
    paths: Option<Arc<PathTurns>>,
    recorder: Recorder,
}

fn shares(
    plan: &Plan,
    endpoints: &[Vec<Endpoint>],
    full: &SyncSender<Batch>,
    gathering: &mut Gathering,
) -> Vec<ThreadInput> {
    let mut shares = Vec::new();
    for (number, (stream, endpoints)) in plan.streams.iter().zip(endpoints).enumerate() {
        let length = Arc::new(OnceLock::new());
        let paths = stream.paths.clone().map(PathTurns::new).map(Arc::new);
        for index in 0..stream.threads.max(1) {
            let (give_back, empty) = sync_channel(BATCHES_WAITING);
            let threads = &mut gathering.streams[number].threads;
            threads.push(GatheredThread::new(give_back));
            let settings = RecorderSettings {
                stream: number,
                thread: threads.len() - 1,
                interval_ns: u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX),
                records_max: stream.records_max / threads_of(stream),
                variable_length: stream.variable_length,
                by_rate: ByRate::of(&stream.pace),
                length: Arc::clone(&length),
                full: full.clone(),
                empty,
            };
            shares.push(ThreadInput {
                stream: number,
                index,
                plan: stream.clone(),
                endpoints: endpoints.clone(),
                paths: paths.clone(),
                recorder: Recorder::new(settings),
            });
        }
    }
    shares
}

/// The result of a thread.
struct Ended {
    ending: Ending,
    usage: ThreadUsage,
}

type Running = JoinHandle<io::Result<Ended>>;

fn begin(shares: Vec<ThreadInput>, clock: Clock, stop: &Stop) -> Result<Vec<Running>, RunError> {
    let start = |input: ThreadInput| {
        let share = Share::of(
            &input.plan,
            input.index,
            input.paths.clone(),
            clock,
            stop.clone(),
        );
        start(input.stream, share, input.endpoints, input.recorder).map_err(|source| {
            // The threads that already run have no collector to report to.
            stop.stop();
            RunError::System {
                what: "cannot start a thread",
                source,
            }
        })
    };
    shares.into_iter().map(start).collect()
}

fn start(
    stream: usize,
    share: Share,
    endpoints: Vec<Endpoint>,
    recorder: Recorder,
) -> io::Result<Running> {
    let name = format!("load-{stream}-{}", share.index);
    thread::Builder::new().name(name).spawn(move || {
        let stop = share.stop.clone();
        let make = AssertUnwindSafe(|| make(stream, share, endpoints, recorder));
        let outcome = catch_unwind(make);
        // What the others measure would be no measurement of the plan.
        if !matches!(outcome, Ok(Ok(_))) {
            stop.stop();
        }
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Makes one thread's share of the load, on that thread.
fn make(
    stream: usize,
    share: Share,
    endpoints: Vec<Endpoint>,
    recorder: Recorder,
) -> io::Result<Ended> {
    // With the default slack timers fire up to 50 us late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let clock = share.clock;
    let begun = clock.now();
    let waited = ThreadUsage::waited_by_this_thread();
    let ending = match share.plan.protocol {
        Protocol::Http1 => http1::work(&share, &endpoints, recorder)?,
        Protocol::Http2 | Protocol::WebSocket => session::work(share, endpoints, recorder),
    };
    let (user, system) = ThreadUsage::of_this_thread();
    let elapsed = Duration::from_nanos(clock.now() - begun);
    let usage = ThreadUsage {
        stream,
        user,
        system,
        waited: ThreadUsage::waited_by_this_thread().saturating_sub(waited),
        elapsed,
    };
    Ok(Ended { ending, usage })
}

fn join(running: Vec<Running>) -> Result<Vec<Ended>, RunError> {
    let join = |thread: Running| match thread.join() {
        Ok(ended) => ended.map_err(|source| RunError::System {
            what: "a thread that makes load failed",
            source,
        }),
        Err(panic) => resume_unwind(panic),
    };
    running.into_iter().map(join).collect()
}

/// The collected measurements of all streams.
struct Gathering {
    streams: Vec<Gathered>,
}

/// The collected measurements of one stream.
struct Gathered {
    tally: Tally,
    timeline: Timeline,
    by_rate: ByRate,
    first: Option<FirstResponse>,
    records: Vec<RequestRecord>,
    threads: Vec<GatheredThread>,
}

/// Intervals of one thread that wait for the same interval of the others.
struct GatheredThread {
    is_over: bool,
    waiting: VecDeque<Batch>,
    give_back: SyncSender<Box<Tally>>,
}

impl GatheredThread {
    fn new(give_back: SyncSender<Box<Tally>>) -> Self {
        Self {
            is_over: false,
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
            by_rate: ByRate::default(),
            first: None,
            records: Vec::new(),
            threads: Vec::new(),
        };
        Self {
            streams: plan.streams.iter().map(gathered).collect(),
        }
    }

    /// Returns the first thread of the first stream that is not over.
    fn first_running(&self) -> usize {
        let threads = &self.streams[0].threads;
        threads.iter().take_while(|thread| thread.is_over).count()
    }

    fn take(&mut self, mut batch: Batch, progress: &mut dyn FnMut(&Progress<'_>)) {
        let stream = batch.stream;
        let gathered = &mut self.streams[stream];
        gathered.threads[batch.thread].is_over = batch.is_last;
        if let Some(first) = batch.first.take() {
            gathered.first.get_or_insert(*first);
        }
        gathered.records.append(&mut batch.records);
        gathered.by_rate.add(&batch.by_rate);
        gathered.threads[batch.thread].waiting.push_back(batch);
        while let Some(end_ns) = gathered.complete_until() {
            gathered.interval(stream, end_ns, progress);
        }
    }

    fn finish(
        self,
        plan: &Plan,
        endings: &[Ended],
        stopped: Option<Duration>,
    ) -> Vec<StreamMeasurement> {
        let streams = self.streams.into_iter().zip(&plan.streams).enumerate();
        let finished = streams.map(|(number, (gathered, plan))| {
            let mine = || endings.iter().filter(|end| end.usage.stream == number);
            let last_ns = mine().map(|end| end.ending.last_ns).max().unwrap_or(0);
            let cut = stopped.filter(|_| mine().any(|end| end.ending.was_cut));
            StreamMeasurement {
                plan: plan.clone(),
                elapsed: cut.unwrap_or(Duration::from_nanos(last_ns)),
                tally: gathered.tally,
                timeline: gathered.timeline,
                by_rate: gathered.by_rate,
                first: gathered.first,
                records: gathered.records,
                in_flight_most: mine().map(|end| end.ending.in_flight_most).sum(),
                unfinished: mine().map(|end| end.ending.unfinished).sum(),
            }
        });
        finished.collect()
    }
}

impl Gathered {
    /// Returns the end of the next interval for which every thread has sent its batch.
    fn complete_until(&self) -> Option<u64> {
        let fronts = self
            .threads
            .iter()
            .filter_map(|thread| thread.waiting.front());
        let end_ns = fronts.map(|batch| batch.end_ns).max()?;
        // Before its first batch a thread has sent nothing, however short the interval is.
        let reaches = |batch: &Batch| batch.end_ns + self.tolerance_ns() >= end_ns;
        let has_sent =
            |thread: &GatheredThread| thread.is_over || thread.waiting.back().is_some_and(reaches);
        self.threads.iter().all(has_sent).then_some(end_ns)
    }

    /// Returns the greatest distance between the ends of the same interval in different threads.
    fn tolerance_ns(&self) -> u64 {
        u64::try_from(self.timeline.interval().as_nanos() / 2).unwrap_or(u64::MAX)
    }

    /// Merges the batches of all threads until then.
    fn interval(&mut self, stream: usize, end_ns: u64, progress: &mut dyn FnMut(&Progress<'_>)) {
        let limit = end_ns + self.tolerance_ns();
        let mut sum: Option<Batch> = None;
        for thread in &mut self.threads {
            let is_within = |batch: &Batch| batch.end_ns <= limit;
            while thread.waiting.front().is_some_and(is_within)
                && let Some(mut batch) = thread.waiting.pop_front()
            {
                let Some(sum) = &mut sum else {
                    sum = Some(batch);
                    continue;
                };
                sum.tally.add(&batch.tally);
                sum.begin_ns = sum.begin_ns.min(batch.begin_ns);
                sum.end_ns = sum.end_ns.max(batch.end_ns);
                batch.tally.clear();
                let _ = thread.give_back.try_send(batch.tally);
            }
        }
        if let Some(sum) = sum {
            self.note(stream, sum, progress);
        }
    }

    fn note(&mut self, stream: usize, mut sum: Batch, progress: &mut dyn FnMut(&Progress<'_>)) {
        let begin = Duration::from_nanos(sum.begin_ns);
        let elapsed = Duration::from_nanos(sum.end_ns);
        let length = elapsed.saturating_sub(begin);
        self.tally.add(&sum.tally);
        self.timeline.push(begin, length, &sum.tally);
        // The rest at the end may be too short to have a rate.
        if length >= self.timeline.interval() / 2 {
            progress(&Progress {
                stream,
                elapsed,
                length,
                interval: &sum.tally,
                sent: self.tally.counts.sent,
                ended: self.tally.ended(),
            });
        }
        sum.tally.clear();
        let _ = self.threads[sum.thread].give_back.try_send(sum.tally);
    }
}
