//! The life cycle of a connection.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout_at};

use super::connect::{Failure, connect};
use super::desk::{Desk, Ticket};
use super::exchange::Exchange;
use super::http2;
use super::room::Room;
use super::websocket;
use crate::plan::Protocol;
use crate::record::FailureKind;

/// The pause after a connection could not be made, so that a server that is gone does not cause a
/// busy loop.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);

/// The result of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It was made, with any later outcome.
    Opened,
    /// It was not made, or the server does not speak the protocol.
    Refused,
}

/// A connection that speaks the plan's protocol.
enum Line {
    Http2(Box<http2::Line>),
    WebSocket(Box<websocket::Line>),
}

/// Closed loop: runs one connection after the other, until nothing more is sent.
pub(super) async fn hold_closed(room: &Rc<Room>) {
    while let Some(ticket) = next(room) {
        hold(room, ticket).await;
    }
}

fn next(room: &Room) -> Option<Ticket> {
    match &mut *room.desk.borrow_mut() {
        Desk::Closed(quota) => quota.take(room.now()),
        Desk::Open(_) => None,
    }
}

/// Makes a connection for a request, and serves it and others until the connection ends.
pub(super) async fn hold(room: &Rc<Room>, ticket: Ticket) {
    let mut exchange = room.begin(&ticket);
    let used = match timeout_at(exchange.deadline, open(room, ticket.endpoint)).await {
        Ok(Ok(line)) => {
            let lasted = room.now().saturating_sub(exchange.begun);
            room.ledger.borrow_mut().connected();
            exchange.connect = Some(lasted);
            serve(room, line, exchange).await
        }
        Ok(Err(failure)) => {
            room.not_connected(&exchange, failure);
            Use::Refused
        }
        Err(_) => {
            let detail = format!("not established within {:?}", room.share.plan.timeout);
            let failure = Failure::new(FailureKind::ConnectTimeout, detail);
            room.not_connected(&exchange, failure);
            Use::Refused
        }
    };
    if used == Use::Refused {
        sleep(PAUSE_AFTER_FAILURE).await;
    }
}

async fn open(room: &Room, number: usize) -> Result<Line, Failure> {
    let transport = connect(room, room.endpoint(number)).await?;
    match room.share.plan.protocol {
        Protocol::WebSocket => {
            let line = websocket::open(room, transport, number).await?;
            Ok(Line::WebSocket(Box::new(line)))
        }
        Protocol::Http1 | Protocol::Http2 => {
            let line = http2::open(transport).await?;
            Ok(Line::Http2(Box::new(line)))
        }
    }
}

async fn serve(room: &Rc<Room>, line: Line, first: Exchange) -> Use {
    match line {
        Line::Http2(line) => http2::serve(room, *line, first).await,
        Line::WebSocket(line) => {
            websocket::serve(room, *line, first).await;
            Use::Opened
        }
    }
}
