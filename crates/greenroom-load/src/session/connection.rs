//! The life cycle of a connection.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout_at};

use super::connect::{Failure, connect};
use super::dispatcher::{Dispatcher, Ticket};
use super::engine::Engine;
use super::exchange::Exchange;
use super::http2;
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
pub(super) async fn hold_closed(engine: &Rc<Engine>) {
    while let Some(ticket) = next(engine) {
        hold(engine, ticket).await;
    }
}

fn next(engine: &Engine) -> Option<Ticket> {
    match &mut *engine.dispatcher.borrow_mut() {
        Dispatcher::Closed(quota) => quota.take(engine.now()),
        Dispatcher::Open(_) => None,
    }
}

/// Makes a connection for a request, and serves it and others until the connection ends.
pub(super) async fn hold(engine: &Rc<Engine>, ticket: Ticket) {
    let mut exchange = engine.begin(&ticket);
    let used = match timeout_at(exchange.deadline, open(engine, ticket.due.target)).await {
        Ok(Ok(line)) => {
            let lasted = engine.now().saturating_sub(exchange.begun);
            engine.outcomes.borrow_mut().connected();
            exchange.connect = Some(lasted);
            serve(engine, line, exchange).await
        }
        Ok(Err(failure)) => {
            engine.not_connected(&exchange, failure);
            Use::Refused
        }
        Err(_) => {
            let detail = format!("not established within {:?}", engine.share.plan.timeout);
            let failure = Failure::new(FailureKind::ConnectTimeout, detail);
            engine.not_connected(&exchange, failure);
            Use::Refused
        }
    };
    if used == Use::Refused {
        sleep(PAUSE_AFTER_FAILURE).await;
    }
}

async fn open(engine: &Engine, number: usize) -> Result<Line, Failure> {
    let transport = connect(engine, engine.endpoint(number)).await?;
    match engine.share.plan.protocol {
        Protocol::WebSocket => {
            let line = websocket::open(engine, transport, number).await?;
            Ok(Line::WebSocket(Box::new(line)))
        }
        Protocol::Http1 | Protocol::Http2 => {
            let line = http2::open(transport).await?;
            Ok(Line::Http2(Box::new(line)))
        }
    }
}

async fn serve(engine: &Rc<Engine>, line: Line, first: Exchange) -> Use {
    match line {
        Line::Http2(line) => http2::serve(engine, *line, first).await,
        Line::WebSocket(line) => {
            websocket::serve(engine, *line, first).await;
            Use::Opened
        }
    }
}
