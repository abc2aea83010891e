use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::connection::{Input, Link, number};
use super::entry::{Beginning, End, Entry, Lost, Place, Wanted};
use super::parse::{Head, Malformed, SentFile};
use super::table::link_to;
use crate::pool::{Phase, Run, Worker};

/// The bytes of a stream that are taken before the worker gets an acknowledgement.
const ACKNOWLEDGED_BYTES: u32 = 32_768;

/// A request at a worker. Dropping it gives the request up there too.
#[derive(Debug)]
pub(crate) struct Call {
    link: Rc<Link>,
    id: usize,
}

/// A worker's response.
#[derive(Debug)]
pub(crate) enum WorkerResponse {
    Whole(Head, Bytes),
    /// The frames of the body come from [`Call::poll_bytes`].
    Streamed(Head),
    File(Head, SentFile),
}

/// The reasons why there is no response.
#[derive(Debug)]
pub(crate) enum NoResponse {
    /// The worker is gone.
    Lost(Lost),
    /// The worker is blocked by another request.
    Recalled,
    /// The application's response violates HTTP.
    Malformed(Malformed),
    /// The worker ended the request without a response.
    Aborted,
}

/// The next chunk of a streamed body.
#[derive(Debug)]
pub(crate) enum Streamed {
    Bytes(Bytes),
    End,
    /// The application or its worker gave up half way.
    Aborted,
}

impl Call {
    /// Sends a request to the worker of `run`. `environment` appends its pairs. A request that may
    /// be sent twice is `recallable`: recalled if the worker is blocked before it begins.
    pub(crate) fn begin(
        run: Run,
        environment: impl FnOnce(&mut Vec<u8>),
        input: &Input<'_>,
        recallable: bool,
    ) -> Self {
        let link = link_to(&run);
        let place = Place {
            charge: run.charge(),
            behind: run.behind(),
            recallable,
        };
        let id = link.send_request(environment, input, place);
        run.sent();
        Self { link, id }
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.link.worker
    }

    /// Polls for the beginning of the response; informational responses before it go to
    /// `inform`.
    pub(crate) fn poll_response(
        &self,
        cx: &mut Context<'_>,
        inform: impl FnMut(Head),
    ) -> Poll<Result<WorkerResponse, NoResponse>> {
        self.with_entry(|entry| {
            entry.informational.drain(..).for_each(inform);
            match (entry.beginning.take(), entry.end) {
                (Some(Beginning::Whole(head, body)), _) => {
                    Poll::Ready(Ok(WorkerResponse::Whole(head, body)))
                }
                (Some(Beginning::Streamed(head)), _) => {
                    Poll::Ready(Ok(WorkerResponse::Streamed(head)))
                }
                (Some(Beginning::File(head, file)), _) => {
                    Poll::Ready(Ok(WorkerResponse::File(head, file)))
                }
                (Some(Beginning::Malformed(malformed)), _) => {
                    Poll::Ready(Err(NoResponse::Malformed(malformed)))
                }
                (None, Some(End::Lost(lost))) => Poll::Ready(Err(NoResponse::Lost(lost))),
                (None, Some(_)) => Poll::Ready(Err(NoResponse::Aborted)),
                (None, None) if entry.wanted == Wanted::Elsewhere => {
                    Poll::Ready(Err(NoResponse::Recalled))
                }
                (None, None) => wait(entry, cx),
            }
        })
    }

    /// Polls for the next chunk of a body that is streamed.
    pub(crate) fn poll_bytes(&mut self, taken: &mut u32, cx: &mut Context<'_>) -> Poll<Streamed> {
        let chunk = self.with_entry(|entry| match (entry.body.pop_front(), entry.end) {
            (Some(bytes), _) => Poll::Ready(Streamed::Bytes(bytes)),
            (None, Some(End::Complete)) => Poll::Ready(Streamed::End),
            (None, Some(_)) => Poll::Ready(Streamed::Aborted),
            (None, None) => wait(entry, cx),
        });
        if let Poll::Ready(Streamed::Bytes(bytes)) = &chunk {
            self.acknowledge(number(bytes.len()), taken);
        }
        chunk
    }

    fn acknowledge(&self, bytes: u32, taken: &mut u32) {
        *taken += bytes;
        if *taken < ACKNOWLEDGED_BYTES {
            return;
        }
        self.link.send_note(b'A', self.id, Some(*taken));
        let mut settlement = self.link.settlement.borrow_mut();
        self.with_entry(|entry| entry.acknowledge(*taken as usize, &mut settlement));
        *taken = 0;
    }

    /// Marks that the request has left HTTP: its run may last as long as its client stays.
    pub(crate) fn leave_http(&self) {
        let mut settlement = self.link.settlement.borrow_mut();
        self.with_entry(|entry| entry.exempt(Phase::Detached, &mut settlement));
        drop(settlement);
        self.link.settle();
    }

    /// Lets the worker close the response's file: it is open here, or the client is gone.
    pub(crate) fn release_file(&self) {
        self.link.send_note(b'O', self.id, None);
        let mut settlement = self.link.settlement.borrow_mut();
        self.with_entry(|entry| {
            entry.holds_file = false;
            entry.finish(End::Complete, &mut settlement);
        });
        drop(settlement);
        self.link.settle();
    }

    /// Makes the worker stream the response's file, which cannot be opened here.
    pub(crate) fn refuse_file(&self) {
        self.with_entry(|entry| entry.holds_file = false);
        self.link.send_note(b'N', self.id, None);
    }

    fn with_entry<T>(&self, look: impl FnOnce(&mut Entry) -> T) -> T {
        look(&mut self.link.entries.borrow_mut()[self.id])
    }
}

fn wait<T>(entry: &mut Entry, cx: &mut Context<'_>) -> Poll<T> {
    entry.waker = Some(cx.waker().clone());
    Poll::Pending
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.with_entry(|entry| entry.holds_file && !entry.is_over()) {
            self.release_file();
        }
        let mut entries = self.link.entries.borrow_mut();
        let entry = &mut entries[self.id];
        if entry.is_over() {
            entries.remove(self.id);
            return;
        }
        entry.abandon(&mut self.link.settlement.borrow_mut());
        drop(entries);
        self.link.send_note(b'G', self.id, None);
        self.link.settle();
    }
}
