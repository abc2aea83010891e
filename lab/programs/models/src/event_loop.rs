//! One thread that waits for all of its connections at once.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::Timespec;
use slab::Slab;

use crate::connection::accept_many;
use crate::{Connection, Request, Response};

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Events that are taken from the kernel at once.
const EVENTS_MAX: usize = 256;
/// Pipelined requests of one connection before the others have their turn.
const TURN_MAX: usize = 32;
/// The interval at which silent connections are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// A connection, told from later ones in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    key: usize,
    serial: u64,
}

/// Responses that other threads have made: one at most for each connection.
#[derive(Debug)]
pub struct Done {
    responses: Mutex<Vec<(Id, Response)>>,
    waker: OwnedFd,
}

impl Done {
    /// Hands a response to the loop.
    pub fn push(&self, id: Id, response: Response) {
        let mut responses = self.responses.lock();
        responses.push((id, response));
        if responses.len() == 1 {
            // Adding 1 to a counter of 64 bits that is read often cannot fail.
            let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
        }
    }

    fn take(&self) -> Vec<(Id, Response)> {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        mem::take(&mut self.responses.lock())
    }
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    serial: u64,
    /// A request is waited for or worked on
    busy: bool,
}

/// An event loop: sockets, timers, and responses from elsewhere.
#[derive(Debug)]
pub struct EventLoop {
    epoll: OwnedFd,
    listener: TcpListener,
    slots: Slab<Slot>,
    open: Arc<()>,
    serial: u64,
    timers: BTreeMap<(Instant, Id), Request>,
    done: Arc<Done>,
    /// Connections that have had their turn and are not through
    again: Vec<Id>,
}

impl EventLoop {
    /// Makes a loop that accepts from this listener.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        epoll::add(&epoll, &waker, EventData::new_u64(WAKER), EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            slots: Slab::new(),
            open: Arc::default(),
            serial: 0,
            timers: BTreeMap::new(),
            done: Arc::new(Done {
                responses: Mutex::default(),
                waker,
            }),
            again: Vec::new(),
        })
    }

    /// Returns what other threads hand their responses to.
    #[must_use]
    pub fn done(&self) -> Arc<Done> {
        Arc::clone(&self.done)
    }

    /// Serves for ever. `handle` is called on this thread, after the request's wait: it returns
    /// the response, or `None` if another thread will.
    ///
    /// # Errors
    /// Those of epoll.
    pub fn run(
        mut self,
        mut handle: impl FnMut(Id, Request) -> Option<Response>,
    ) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut swept = Instant::now();
        loop {
            let wait = self.wait(swept + SWEEP);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                let data = event.data;
                match data.u64() {
                    LISTENER => self.accept(),
                    WAKER => self.take_done(&mut handle),
                    key => self.drive_key(key, &mut handle),
                }
            }
            for id in mem::take(&mut self.again) {
                self.drive(id, &mut handle);
            }
            self.take_due(&mut handle);
            if swept.elapsed() > SWEEP {
                swept = Instant::now();
                self.slots
                    .retain(|_, slot| slot.busy || !slot.connection.is_idle());
            }
        }
    }

    fn wait(&self, sweep: Instant) -> Timespec {
        let next = self.timers.keys().next();
        let next = next.map_or(sweep, |(due, _)| sweep.min(*due));
        let wait = if self.again.is_empty() {
            next.saturating_duration_since(Instant::now())
        } else {
            Duration::ZERO
        };
        Timespec::try_from(wait).unwrap_or_default()
    }

    fn accept(&mut self) {
        for connection in accept_many(&self.listener, &self.open) {
            let entry = self.slots.vacant_entry();
            let data = EventData::new_u64(entry.key() as u64);
            let events = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            if epoll::add(&self.epoll, &connection.stream, data, events).is_ok() {
                self.serial += 1;
                entry.insert(Slot {
                    connection,
                    serial: self.serial,
                    busy: false,
                });
            }
        }
    }

    fn take_done(&mut self, handle: &mut impl FnMut(Id, Request) -> Option<Response>) {
        for (id, response) in self.done.take() {
            self.finish(id, &response, handle);
        }
    }

    fn take_due(&mut self, handle: &mut impl FnMut(Id, Request) -> Option<Response>) {
        let now = Instant::now();
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= now
        {
            let ((_, id), request) = first.remove_entry();
            if let Some(response) = handle(id, request) {
                self.finish(id, &response, handle);
            }
        }
    }

    fn finish(
        &mut self,
        id: Id,
        response: &Response,
        handle: &mut impl FnMut(Id, Request) -> Option<Response>,
    ) {
        if let Some(slot) = self.slots.get_mut(id.key)
            && slot.serial == id.serial
        {
            slot.busy = false;
            slot.connection.respond(response);
            self.drive(id, handle);
        }
    }

    fn drive_key(&mut self, key: u64, handle: &mut impl FnMut(Id, Request) -> Option<Response>) {
        let key = usize::try_from(key).expect("the key was a usize");
        if let Some(slot) = self.slots.get(key) {
            let serial = slot.serial;
            self.drive(Id { key, serial }, handle);
        }
    }

    /// Lets a connection go on as far as it can: responses are sent in the order of the requests.
    fn drive(&mut self, id: Id, handle: &mut impl FnMut(Id, Request) -> Option<Response>) {
        let Some(slot) = self.slots.get_mut(id.key) else {
            return;
        };
        if slot.serial != id.serial {
            return;
        }
        for _ in 0..TURN_MAX {
            match slot.step() {
                Ok(Some(request)) if request.wait.is_zero() => match handle(id, request) {
                    Some(response) => slot.connection.respond(&response),
                    None => slot.busy = true,
                },
                Ok(Some(request)) => {
                    slot.busy = true;
                    self.timers
                        .insert((Instant::now() + request.wait, id), request);
                }
                Ok(None) => return,
                Err(_) => {
                    self.slots.remove(id.key);
                    return;
                }
            }
        }
        self.again.push(id);
    }
}

impl Slot {
    /// Sends what is to be sent, then receives the next request unless one is at work.
    fn step(&mut self) -> io::Result<Option<Request>> {
        if self.connection.send()? && !self.busy {
            return self.connection.receive();
        }
        Ok(None)
    }
}
