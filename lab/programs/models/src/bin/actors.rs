//! Actors: one for each connection, one for the counter, and one that accepts and supervises the
//! connections. They share nothing and send messages, timers and replies included; a dispatcher
//! with a thread for each core runs those that have some.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, BoxError, Context, messages};
use greenroom_actor::{Directive, Limits, Supervision};
use models::{CONNECTIONS_MAX, Input, Model, Request, Work, announce, listen};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The rest after an accept that failed: a descriptor may get free.
const ACCEPT_REST: Duration = Duration::from_millis(10);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = Model {
        about: "Actors: each connection is one, and so is the counter",
        limits: &[("actors of connections; more are closed", CONNECTIONS_MAX)],
    };
    let listener = listen(model.address())?;
    announce(&listener)?;
    listener.set_nonblocking(true)?;
    let listener = Arc::new(TcpListener::from_std(listener)?);
    let system = ActorSystem::new()?;
    let counter = system.spawn(|| Counter { value: 0 });
    let acceptor = system.spawn(move || Acceptor {
        listener: Arc::clone(&listener),
        counter: counter.clone(),
    });
    acceptor.terminated().await;
    Ok(())
}

struct Counter {
    value: u64,
}

impl Actor for Counter {}

#[messages]
impl Counter {
    #[message]
    fn add(&mut self) -> u64 {
        self.value += 1;
        self.value
    }
}

struct Acceptor {
    listener: Arc<TcpListener>,
    counter: ActorRef<Counter>,
}

impl Actor for Acceptor {
    fn limits() -> Limits {
        Limits::default().children(u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX))
    }

    /// A connection whose actor fails ends, and no other does.
    fn supervision() -> Supervision {
        Supervision::one_for_one().decide(|_| Directive::Stop)
    }

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(context.myself().accept().tell()?)
    }
}

#[messages]
impl Acceptor {
    #[message]
    async fn accept(&mut self, context: &mut Context<Self>) {
        let Ok((stream, _)) = self.listener.accept().await else {
            context.once(ACCEPT_REST, Accept {});
            return;
        };
        let (stream, counter) = (Mutex::new(Some(stream)), self.counter.clone());
        context.spawn(move || Connection {
            stream: stream.lock().take().expect("it is not restarted"),
            counter: counter.clone(),
            input: Input::default(),
        });
        let _ = context.myself().accept().tell(); // it is the only message in its mailbox
    }
}

struct Connection {
    stream: TcpStream,
    counter: ActorRef<Counter>,
    input: Input,
}

impl Actor for Connection {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        self.stream.set_nodelay(true)?;
        Ok(context.myself().receive().tell()?)
    }
}

#[messages]
impl Connection {
    #[message]
    async fn receive(&mut self, context: &mut Context<Self>) {
        match self.stream.readable().await.and_then(|()| self.read()) {
            Ok(0) => context.stop(),
            Ok(_) => self.next(context),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.next(context),
            Err(_) => context.stop(),
        }
    }

    #[message]
    async fn respond(&mut self, request: Request, context: &mut Context<Self>) {
        let count = match request.work {
            Work::Count => self.counter.add().ask().await.ok(),
            _ => Some(0),
        };
        let response = match count {
            Some(count) => request.respond(|| count),
            None => request.overloaded(),
        };
        match self.stream.write_all(&response.bytes).await {
            Ok(()) if !response.close => self.next(context),
            _ => context.stop(),
        }
    }

    /// Sends itself the next message; there is never more than one in its mailbox.
    fn next(&mut self, context: &mut Context<Self>) {
        match self.input.take() {
            None => drop(context.myself().receive().tell()),
            Some(request) if request.wait.is_zero() => {
                drop(context.myself().respond(request).tell());
            }
            Some(request) => drop(context.once(request.wait, Respond { request })),
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut received = [0; 4_096];
        let bytes = self.stream.try_read(&mut received)?;
        self.input.add(&received[..bytes]);
        Ok(bytes)
    }
}
