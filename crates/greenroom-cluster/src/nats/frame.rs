//! Headers of requests and responses. Errors are said as the services of NATS say them (ADR-32).

use std::time::Duration;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;

use crate::codec;
use crate::names::{self, EntityId};
use crate::remote::{TIMEOUT_DEFAULT, TIMEOUT_MAX};
use crate::wire::{Rejection, Request, Response, Target};

/// The time that is left until the deadline, in milliseconds. Left out if it is the default: a
/// message without headers costs its sender, its receiver and the servers the least.
const TIMEOUT: &str = "Greenroom-Timeout";
/// The value of it for a message that is told to an entity: its node responds when it has it.
const NO_TIMEOUT: &str = "none";
/// The id of an entity, [encoded](EntityId::encoded).
const ENTITY: &str = "Greenroom-Entity";
/// The identity of a durable message, [encoded](names::encoded).
const ID: &str = "Greenroom-Id";
/// The time that a further request would wait, in milliseconds. Left out if it is none.
const WAIT: &str = "Greenroom-Wait";
const ERROR: &str = "Nats-Service-Error";
const ERROR_CODE: &str = "Nats-Service-Error-Code";

pub(super) fn headers(request: &Request, timeout: Option<Duration>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    match timeout.map(up_to_millisecond) {
        Some(TIMEOUT_DEFAULT) => {}
        Some(timeout) => headers.insert(TIMEOUT, timeout.as_millis().to_string()),
        None if matches!(request.target, Target::Entity(_)) => headers.insert(TIMEOUT, NO_TIMEOUT),
        None => {}
    }
    if let Target::Entity(id) = &request.target {
        headers.insert(ENTITY, id.encoded());
    }
    if let Some(id) = &request.id {
        headers.insert(ID, names::encoded(id));
    }
    headers
}

/// Rounds up: the asker's own deadline is the earlier one, and a default of which some microseconds
/// are over is the default.
fn up_to_millisecond(timeout: Duration) -> Duration {
    let nanos = timeout.subsec_nanos().next_multiple_of(1_000_000);
    Duration::new(timeout.as_secs(), 0) + Duration::from_nanos(nanos.into())
}

/// Returns the time that is left until the deadline, if somebody waits for a reply.
pub(super) fn timeout(message: &Message, is_awaited: bool) -> Result<Option<Duration>, String> {
    let Some(text) = header(message, TIMEOUT) else {
        return Ok(is_awaited.then_some(TIMEOUT_DEFAULT));
    };
    if text == NO_TIMEOUT {
        return Ok(None);
    }
    let millis = text.parse().map_err(|_| {
        format!("the header {TIMEOUT} is `{text}`, but must be a number of milliseconds")
    })?;
    Ok(Some(Duration::from_millis(millis).min(TIMEOUT_MAX)))
}

pub(super) fn entity(message: &Message) -> Result<EntityId, String> {
    let text = header(message, ENTITY).ok_or_else(|| format!("it has no header {ENTITY}"))?;
    EntityId::decoded(text).ok_or_else(|| format!("the header {ENTITY} is no id: `{text}`"))
}

/// Returns the identity of a durable message. Another program may write it as it is, if that does
/// not begin with `=`.
pub(super) fn id(message: &Message) -> Result<Option<Box<str>>, String> {
    let Some(text) = header(message, ID) else {
        return Ok(None);
    };
    if !text.starts_with('=') {
        return Ok(Some(text.into()));
    }
    let id = names::decoded(text);
    let id = id.ok_or_else(|| format!("the header {ID} is no id: `{text}`"))?;
    Ok(Some(id.into()))
}

fn header<'a>(message: &'a Message, name: &'static str) -> Option<&'a str> {
    let headers = message.headers.as_ref()?;
    headers.get(name).map(async_nats::HeaderValue::as_str)
}

/// Returns the headers, if there are to be any, and the payload of a response.
pub(super) fn of_response(response: Response, bytes_max: usize) -> (Option<HeaderMap>, Bytes) {
    let outcome = response.outcome.and_then(|reply| {
        if reply.len() <= bytes_max {
            return Ok(reply);
        }
        let bytes = reply.len();
        Err(Rejection::Failed {
            error: format!("the reply has {bytes} bytes; at most {bytes_max} are allowed"),
        })
    });
    let mut headers = HeaderMap::new();
    let wait = response.wait.as_millis();
    if wait > 0 {
        headers.insert(WAIT, wait.to_string());
    }
    let payload = match outcome {
        Ok(reply) => reply,
        Err(rejection) => {
            add_error(&mut headers, &rejection);
            codec::encode(&rejection).unwrap_or_default()
        }
    };
    ((!headers.is_empty()).then_some(headers), payload)
}

pub(super) fn add_error(headers: &mut HeaderMap, rejection: &Rejection) {
    headers.insert(ERROR, one_line(&rejection.to_string()));
    headers.insert(ERROR_CODE, code(rejection));
}

pub(super) fn response(message: Message) -> Response {
    let wait = header(&message, WAIT).and_then(|wait| wait.parse().ok());
    let outcome = if header(&message, ERROR_CODE).is_some() {
        Err(
            codec::decode(&message.payload).unwrap_or_else(|_| Rejection::Failed {
                error: header(&message, ERROR).unwrap_or("unknown").to_owned(),
            }),
        )
    } else {
        Ok(message.payload)
    };
    Response {
        outcome,
        wait: Duration::from_millis(wait.unwrap_or(0)),
    }
}

/// Returns the code of HTTP that says the same.
fn code(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::NoSuchActor { .. } | Rejection::NoSuchMessage { .. } => "404",
        Rejection::NotDecoded { .. } => "400",
        Rejection::Moved { .. } => "421",
        Rejection::Failed { .. } => "500",
        Rejection::Late => "504",
        Rejection::Busy { .. }
        | Rejection::Draining
        | Rejection::Ended
        | Rejection::NotActive { .. } => "503",
    }
}

/// Returns the text without what a header cannot have.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
