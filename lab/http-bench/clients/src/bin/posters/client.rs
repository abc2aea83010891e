//! A client: posts, one request after the other, until its connection ends or the server announces
//! that it will.

use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use http_bench_clients::{Outcome, response};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::All;

const RESPONSE_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct Client {
    all: Rc<All>,
    stream: TcpStream,
    /// Seeded, so that the pauses are the same in each run.
    rng: Rng,
    read: Vec<u8>,
    has_begun: bool,
}

impl Drop for Client {
    /// Counts as having begun, so that none waits for a client that ended without a response.
    fn drop(&mut self) {
        self.begin();
    }
}

/// The end of an exchange.
enum Exchange {
    Responded(response::Head),
    Ended(Outcome),
}

impl Client {
    pub(crate) async fn connect(index: u32, all: &Rc<All>) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(all.target.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            all: Rc::clone(all),
            stream,
            rng: Rng::with_seed(index.into()),
            read: Vec::new(),
            has_begun: false,
        })
    }

    /// Posts to the end. A response that is no HTTP, or too long, is an error.
    pub(crate) async fn post(mut self) -> anyhow::Result<Outcome> {
        loop {
            let head = match self.exchange().await? {
                Exchange::Responded(head) => head,
                Exchange::Ended(outcome) => return Ok(outcome),
            };
            self.count(head);
            if !head.keeps {
                return Ok(Outcome::Announced);
            }
            if !self.has_begun {
                self.begin();
                self.all.go_on.acquire().await?.forget();
            }
            self.pause().await;
            if Instant::now() >= self.all.until.get() {
                return Ok(Outcome::StillServed);
            }
            if self.has_ended() {
                return Ok(Outcome::EndedIdle);
            }
        }
    }

    /// Notes, once, that its first request has ended.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.all.began.add_permits(1);
        }
    }

    fn count(&self, head: response::Head) {
        let mut outcomes = self.all.outcomes.borrow_mut();
        *match (head.status, self.all.is_signalled.get()) {
            (200, false) => &mut outcomes.answered_before,
            (200, true) => &mut outcomes.answered_after,
            _ => &mut outcomes.refused,
        } += 1;
    }

    async fn pause(&mut self) {
        if self.all.pause_max.is_zero() {
            return;
        }
        let millis = u64::try_from(self.all.pause_max.as_millis()).unwrap_or(u64::MAX);
        sleep(Duration::from_millis(self.rng.u64(..=millis))).await;
    }

    /// Asks the system, as pools of connections do, whether the server has ended the connection.
    fn has_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let looked = recv(&self.stream, &mut [0; 1][..], flags);
        !matches!(looked, Err(Errno::AGAIN))
    }

    async fn exchange(&mut self) -> anyhow::Result<Exchange> {
        if self.stream.write_all(&self.all.request).await.is_err() {
            return Ok(Exchange::Ended(Outcome::Unsent));
        }
        self.read.clear();
        loop {
            let until = self.all.until.get();
            let read = timeout_at(until, self.stream.read_buf(&mut self.read)).await;
            let Ok(read) = read else {
                return Ok(Exchange::Ended(Outcome::NoResponse));
            };
            match read {
                Ok(0) => return Ok(Exchange::Ended(Outcome::LostByEnd)),
                Ok(_) => {}
                Err(error) => return lost(&error),
            }
            match response::head(&self.read)? {
                Some(head) if head.bytes == self.read.len() => {
                    return Ok(Exchange::Responded(head));
                }
                _ => anyhow::ensure!(self.read.len() < RESPONSE_BYTES_MAX, "too long a response"),
            }
        }
    }
}

fn lost(error: &std::io::Error) -> anyhow::Result<Exchange> {
    match error.kind() {
        // Linux says the latter if the connection was ended first, and then reset.
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Ok(Exchange::Ended(Outcome::LostByReset))
        }
        kind => anyhow::bail!("reading a response: {kind}"),
    }
}
