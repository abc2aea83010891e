//! Stages with queues: accept, parse, handle, send. Each stage has threads of its own, and two
//! controllers, those of Haboob ("SEDA: An Architecture for Well-Conditioned, Scalable Internet
//! Services", SOSP 2001): one adds and removes threads, one finds the size of batches. A connection
//! is an event that travels from queue to queue.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use models::{CONNECTIONS_MAX, POOL_THREADS_MAX, QUEUE_MAX};
use models::{Connection, Counter, Model, Queue, Ready, Request, Sockets, announce, listen};

/// The interval of both controllers. Haboob's is a second; our runs take seconds.
const SAMPLE: Duration = Duration::from_millis(5);
/// Events in the queue beyond which a stage gets one more thread. Haboob's is 100, before disks.
const QUEUE_THRESHOLD: usize = 2;
/// A thread that was idle for so long ends, as in Haboob.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Threads of each stage that does not block.
const OTHER_THREADS_MAX: usize = 4;
/// Events that a thread takes at once.
const BATCH_MAX: usize = 32;

/// A connection, with a request once one is parsed.
type Event = (Connection, Option<Request>);

struct Stage {
    queue: Queue<Event>,
    threads: AtomicUsize,
    threads_max: usize,
    batch: AtomicUsize,
    batch_max: usize,
    handled: AtomicU64,
}

impl Stage {
    /// Makes a stage, which lasts as long as the program.
    fn new(queue_max: usize, threads_max: usize, batch_max: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            queue: Queue::new(queue_max),
            threads: AtomicUsize::new(0),
            threads_max,
            batch: AtomicUsize::new(batch_max),
            batch_max,
            handled: AtomicU64::new(0),
        }))
    }

    /// Runs both controllers; they run the handler for the stage's events.
    fn start(&'static self, handle: impl Fn(Event) + Clone + Send + 'static) {
        thread::spawn(move || {
            let mut rate = 0.0;
            loop {
                self.control_threads(&handle);
                rate = self.control_batch(rate);
                thread::sleep(SAMPLE);
            }
        });
    }

    fn control_threads(&'static self, handle: &(impl Fn(Event) + Clone + Send + 'static)) {
        let threads = self.threads.load(Relaxed);
        let scarce = self.queue.len() > QUEUE_THRESHOLD && threads < self.threads_max;
        if threads == 0 || scarce {
            let handle = handle.clone();
            self.threads.fetch_add(1, Relaxed);
            thread::spawn(move || self.work(&handle));
        }
    }

    fn work(&self, handle: &impl Fn(Event)) {
        loop {
            let batch = self.queue.pop_batch(self.batch.load(Relaxed), IDLE_MAX);
            if batch.is_empty() {
                self.threads.fetch_sub(1, Relaxed);
                return;
            }
            self.handled.fetch_add(batch.len() as u64, Relaxed);
            batch.into_iter().for_each(handle);
        }
    }

    /// Makes batches smaller while the rate does not suffer, larger once it does; after an idle
    /// interval they are as large as can be. Returns the moving average of the rate.
    fn control_batch(&self, before: f64) -> f64 {
        let handled = u32::try_from(self.handled.swap(0, Relaxed)).unwrap_or(u32::MAX);
        let rate = before.mul_add(0.7, f64::from(handled) * 0.3);
        let batch = self.batch.load(Relaxed);
        let next = match handled {
            0 => self.batch_max,
            _ if rate < before * 0.9 => self.batch_max.min(batch + 2),
            _ => batch.max(2) - 1,
        };
        self.batch.store(next, Relaxed);
        rate
    }
}

fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "SEDA: stages with queues, threads and controllers",
        limits: &[
            ("connections; more are closed", CONNECTIONS_MAX),
            ("requests that wait for `handle`; more get 503", QUEUE_MAX),
            ("threads of `handle`", POOL_THREADS_MAX),
            ("threads of each other stage", OTHER_THREADS_MAX),
            ("events in a batch", BATCH_MAX),
        ],
    };
    let listener = listen(model.address())?;
    announce(&listener)?;
    let sockets: &'static Sockets = Box::leak(Box::new(Sockets::new(listener)?));
    let counter: &'static Counter = Box::leak(Box::default());
    // Who blocks takes no batches: the second event would wait for the first.
    let stage = |()| Stage::new(CONNECTIONS_MAX, OTHER_THREADS_MAX, BATCH_MAX);
    let [accept, parse, send] = [(); 3].map(stage);
    let handle = Stage::new(QUEUE_MAX, POOL_THREADS_MAX, 1);
    accept.start(move |(connection, _)| sockets.wait(connection));
    parse.start(move |(mut connection, _)| match connection.receive() {
        Ok(None) => sockets.wait(connection),
        Ok(Some(request)) => {
            let refused = handle.queue.try_push((connection, Some(request)));
            if let Err((mut connection, Some(request))) = refused {
                connection.respond(&request.overloaded());
                send.queue.push((connection, None));
            }
        }
        Err(_) => {} // its client has left
    });
    handle.start(move |(mut connection, request)| {
        if let Some(request) = request {
            thread::sleep(request.wait);
            connection.respond(&request.respond(|| counter.add()));
        }
        send.queue.push((connection, None));
    });
    send.start(move |(mut connection, _)| match connection.send() {
        Ok(true) if connection.has_input() => parse.queue.push((connection, None)),
        Ok(_) => sockets.wait(connection),
        Err(_) => {} // that was its last response
    });
    loop {
        let Ready(accepted, readable, writable) = sockets.next()?;
        for (stage, connections) in [(accept, accepted), (parse, readable), (send, writable)] {
            for connection in connections {
                stage.queue.push((connection, None));
            }
        }
    }
}
