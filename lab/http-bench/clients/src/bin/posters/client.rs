//! One client: it posts, one request after the other, until its connection ends or it is told that it does.

use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

use http_bench_clients::{Fate, answer};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::All;

const ANSWER_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct Client {
    all: Rc<All>,
    stream: TcpStream,
    chance: u64,
    read: Vec<u8>,
    has_begun: bool,
}

impl Drop for Client {
    /// Nobody waits for one that came to its end before it had a response.
    fn drop(&mut self) {
        self.begin();
    }
}

/// How an exchange ended.
enum Exchange {
    Answered(answer::Head),
    Ended(Fate),
}

impl Client {
    pub(crate) async fn connect(index: u32, all: &Rc<All>) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(all.target.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            all: Rc::clone(all),
            stream,
            chance: u64::from(index),
            read: Vec::new(),
            has_begun: false,
        })
    }

    /// Posts to the end. An answer that is none of HTTP, or too long, is an error.
    pub(crate) async fn post(mut self) -> anyhow::Result<Fate> {
        loop {
            let head = match self.exchange().await? {
                Exchange::Answered(head) => head,
                Exchange::Ended(fate) => return Ok(fate),
            };
            self.count(head);
            if !head.keeps {
                return Ok(Fate::Told);
            }
            if !self.has_begun {
                self.begin();
                self.all.go_on.acquire().await?.forget();
            }
            self.pause().await;
            if Instant::now() >= self.all.until.get() {
                return Ok(Fate::StillServed);
            }
            if self.has_ended() {
                return Ok(Fate::EndedIdle);
            }
        }
    }

    /// Says, once, that its first request has come to an end.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.all.began.add_permits(1);
        }
    }

    fn count(&self, head: answer::Head) {
        let mut fates = self.all.fates.borrow_mut();
        *match (head.status, self.all.is_told.get()) {
            (200, false) => &mut fates.answered_before,
            (200, true) => &mut fates.answered_after,
            _ => &mut fates.refused,
        } += 1;
    }

    async fn pause(&mut self) {
        if self.all.pause_max.is_zero() {
            return;
        }
        let millis = u64::try_from(self.all.pause_max.as_millis()).unwrap_or(u64::MAX);
        sleep(Duration::from_millis(self.by_chance() % (millis + 1))).await;
    }

    /// The next number of `SplitMix64`, which is the same in each run.
    fn by_chance(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.chance;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Asks the system, as pools of connections do, whether the server has ended the connection.
    fn has_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let looked = recv(&self.stream, &mut [0; 1][..], flags);
        !matches!(looked, Err(Errno::AGAIN))
    }

    async fn exchange(&mut self) -> anyhow::Result<Exchange> {
        if self.stream.write_all(&self.all.request).await.is_err() {
            return Ok(Exchange::Ended(Fate::Unsent));
        }
        self.read.clear();
        loop {
            let until = self.all.until.get();
            let read = timeout_at(until, self.stream.read_buf(&mut self.read)).await;
            let Ok(read) = read else {
                return Ok(Exchange::Ended(Fate::Unanswered));
            };
            match read {
                Ok(0) => return Ok(Exchange::Ended(Fate::LostByEnd)),
                Ok(_) => {}
                Err(error) => return lost(&error),
            }
            match answer::head(&self.read)? {
                Some(head) if head.bytes == self.read.len() => {
                    return Ok(Exchange::Answered(head));
                }
                _ => anyhow::ensure!(self.read.len() < ANSWER_BYTES_MAX, "too long an answer"),
            }
        }
    }
}

fn lost(error: &std::io::Error) -> anyhow::Result<Exchange> {
    match error.kind() {
        // Linux says the latter if the connection was ended first, and then reset.
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Ok(Exchange::Ended(Fate::LostByReset))
        }
        kind => anyhow::bail!("reading an answer: {kind}"),
    }
}
