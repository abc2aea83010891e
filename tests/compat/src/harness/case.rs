use axum::Router;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{Client, Ending, Rig};

/// An application, and the talk of a client with it.
#[derive(Debug)]
pub(crate) struct Case {
    /// `group/name`, which the lists of differences refer to.
    pub(crate) name: &'static str,
    pub(crate) app: App,
    pub(crate) talk: Talk,
}

/// The form in which an application is passed to `serve`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum App {
    /// A make-service with the client's address.
    ConnectInfo(fn(Rig) -> Router),
    /// A make-service.
    MakeService(fn(Rig) -> Router),
    /// A layered router that strips the slash off the end of paths.
    Normalized(fn(Rig) -> Router),
    /// A bare router.
    Router(fn(Rig) -> Router),
}

#[derive(Debug)]
pub(crate) enum Talk {
    /// Steps on HTTP/1 connections.
    Steps(Vec<Step>),
    /// Any other talk.
    Script(Script),
}

/// A client's actions that are more than steps on one connection.
pub(crate) type Script = for<'a> fn(&'a mut Client) -> BoxFuture<'a, Result<(), Ending>>;

/// One step of a client on its connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads this many bytes of any meaning.
    Bytes(usize),
    /// Reads one chunk of a body, or its end.
    Chunk,
    /// Closes the sending side.
    Close,
    /// Goes on with a new connection. The one before stays open, even if it failed.
    Connect,
    /// Logs whether the connection goes on, was closed or was reset.
    End,
    /// Logs that the connection ended, and not how: a race decides who resets it.
    Ended,
    /// Reads the head of a response.
    Head,
    /// Drops the connection.
    Leave,
    /// Waits for a note of the application.
    Note,
    /// Reads a response like [`Response`](Self::Response), without comparing the words in which the
    /// server itself gives its reason.
    Rejection,
    /// Lets the application go on.
    Release,
    /// Reads a response, and the informational ones before it.
    Response,
    /// Reads the rest of a body.
    Rest,
    /// Sends bytes.
    Send(Bytes),
}

impl Case {
    pub(crate) fn steps(name: &'static str, app: App, steps: Vec<Step>) -> Self {
        let talk = Talk::Steps(steps);
        Self { name, app, talk }
    }

    pub(crate) fn script(name: &'static str, app: App, script: Script) -> Self {
        let talk = Talk::Script(script);
        Self { name, app, talk }
    }

    /// Sends requests one after the other, logs each response, and then the state of the
    /// connection.
    pub(crate) fn asking(
        name: &'static str,
        app: App,
        requests: impl IntoIterator<Item = Step>,
    ) -> Self {
        let with_response = |request| [request, Step::Response];
        let mut steps: Vec<_> = requests.into_iter().flat_map(with_response).collect();
        steps.push(Step::End);
        Self::steps(name, app, steps)
    }

    /// Sends requests on a connection each, and logs each response and the state of the connection.
    pub(crate) fn apart(
        name: &'static str,
        app: App,
        requests: impl IntoIterator<Item = Step>,
    ) -> Self {
        let alone = |request| [Step::Connect, request, Step::Response, Step::End];
        Self::steps(name, app, requests.into_iter().flat_map(alone).collect())
    }
}

/// Sends these bytes as they are.
pub(crate) fn raw(bytes: impl Into<Bytes>) -> Step {
    Step::Send(bytes.into())
}

/// Creates a minimal `GET`.
pub(crate) fn get(target: &str) -> Step {
    ask(&format!("GET {target}"), &[], "")
}

/// Creates a request of HTTP/1.1: method and target, its fields beside `Host`, and a body with its
/// length.
pub(crate) fn ask(line: &str, fields: &[&str], body: impl AsRef<[u8]>) -> Step {
    let body = body.as_ref();
    let mut bytes = format!("{line} HTTP/1.1\r\nHost: compat.test\r\n").into_bytes();
    for field in fields {
        bytes.extend_from_slice(format!("{field}\r\n").as_bytes());
    }
    if !body.is_empty() {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    Step::Send(bytes.into())
}

/// Creates a `GET` of HTTP/1.0.
pub(crate) fn http10(target: &str, fields: &[&str]) -> Step {
    let mut text = format!("GET {target} HTTP/1.0\r\n");
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    Step::Send(text.into())
}
