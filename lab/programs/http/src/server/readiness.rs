//! Two ways to learn which connections are ready: a task of the runtime for each, or one epoll
//! instance of their own, for which the runtime waits as for a connection.
//!
//! Both read whole requests and send a canned response, so all that they differ by is what a loop
//! would gain by an instance of its own. A request that comes in parts ends its connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use slab::Slab;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::raw::heads;

const SCRATCH_BYTES: usize = 64 * 1024;
const EVENTS_MAX: usize = 256;

/// The parts of a server that its connections use in turn.
struct Shared {
    scratch: Vec<u8>,
    response: Vec<u8>,
}

impl Shared {
    fn new(response: Vec<u8>) -> Rc<RefCell<Self>> {
        let scratch = vec![0; SCRATCH_BYTES];
        Rc::new(RefCell::new(Self { scratch, response }))
    }

    /// Responds to what has come: `false` if the connection is over.
    fn respond(&mut self, socket: impl AsFd) -> io::Result<bool> {
        let (received, _) = recv(&socket, &mut *self.scratch, RecvFlags::empty())?;
        let (requests, bytes, close) = heads(&self.scratch[..received]);
        if received == 0 || bytes < received {
            return Ok(false);
        }
        for _ in 0..requests {
            send(&socket, &self.response, SendFlags::NOSIGNAL)?;
        }
        Ok(!close)
    }
}

/// Serves each connection by a task of its own, on a runtime for local tasks.
pub(crate) async fn tasks(listener: TcpListener, response: Vec<u8>) -> anyhow::Result<()> {
    let shared = Shared::new(response);
    let add = |stream| {
        let shared = Rc::clone(&shared);
        spawn_local(poll_fn(move |cx| poll_connection(&stream, &shared, cx)));
        Ok(())
    };
    accept(listener, add).await
}

fn poll_connection(stream: &TcpStream, shared: &RefCell<Shared>, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        let mut stays = true;
        // What has come is read at once, and the runtime told that there is no more: it mostly is
        // so, and a call is spared.
        let responded = stream.try_io(Interest::READABLE, || {
            stays = shared.borrow_mut().respond(stream)?;
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
        let is_broken = responded.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock);
        if is_broken || !stays || ready!(stream.poll_read_ready(cx)).is_err() {
            return Poll::Ready(());
        }
    }
}

/// Serves all connections by one task, which their own epoll instance wakes, on a runtime for local
/// tasks.
pub(crate) async fn nested(listener: TcpListener, response: Vec<u8>) -> anyhow::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe; the descriptor is owned"
    )]
    let epoll = AsyncFd::with_interest(epoll, Interest::READABLE)?;
    let nested = Rc::new(Nested {
        epoll,
        sockets: RefCell::default(),
        events: RefCell::new(Vec::with_capacity(EVENTS_MAX)),
        shared: Shared::new(response),
    });
    let served = Rc::clone(&nested);
    spawn_local(async move {
        let failed: io::Result<()> = poll_fn(|cx| served.poll(cx)).await;
        // Valgrind 3.19 does not know the system call.
        failed.expect("events are told");
    });
    accept(listener, |stream| nested.add(stream.into_std()?.into())).await
}

struct Nested {
    epoll: AsyncFd<OwnedFd>,
    sockets: RefCell<Slab<OwnedFd>>,
    events: RefCell<Vec<epoll::Event>>,
    shared: Rc<RefCell<Shared>>,
}

impl Nested {
    fn add(&self, socket: OwnedFd) -> io::Result<()> {
        let mut sockets = self.sockets.borrow_mut();
        let entry = sockets.vacant_entry();
        let data = epoll::EventData::new_u64(entry.key() as u64);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(self.epoll.get_ref(), &socket, data, flags)?;
        entry.insert(socket);
        Ok(())
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.epoll.poll_read_ready(cx))?;
            let mut events = self.events.borrow_mut();
            events.clear();
            let room = spare_capacity(&mut events);
            epoll::wait(self.epoll.get_ref(), room, Some(&Timespec::default()))?;
            for event in &*events {
                self.respond(event.data.u64());
            }
            // If the room was filled, there may be more, of which the runtime is not told again.
            if events.len() < EVENTS_MAX {
                ready.clear_ready();
            }
        }
    }

    fn respond(&self, key: u64) {
        let mut sockets = self.sockets.borrow_mut();
        let key = usize::try_from(key).unwrap_or(usize::MAX);
        let Some(socket) = sockets.get(key) else {
            return;
        };
        let stays = match self.shared.borrow_mut().respond(socket) {
            Ok(stays) => stays,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if !stays {
            sockets.remove(key);
        }
    }
}

async fn accept(
    listener: TcpListener,
    mut add: impl FnMut(TcpStream) -> io::Result<()>,
) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        add(stream)?;
    }
}
