use axum::Router;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{Client, Ending, Rig};

/// An application, and what is said to it.
#[derive(Debug)]
pub(crate) struct Case {
    /// `group/what`: what the lists of differences name it by.
    pub(crate) name: &'static str,
    pub(crate) app: App,
    pub(crate) talk: Talk,
}

/// How an application is handed to `serve`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum App {
    /// Made into a make-service that tells the client's address.
    ConnectInfo(fn(Rig) -> Router),
    /// Made into a make-service.
    MakeService(fn(Rig) -> Router),
    /// Behind a layer that takes the slash off the end of paths.
    Normalized(fn(Rig) -> Router),
    /// As it is.
    Router(fn(Rig) -> Router),
}

#[derive(Debug)]
pub(crate) enum Talk {
    /// One HTTP/1 connection.
    Steps(Vec<Step>),
    /// Anything else.
    Script(Script),
}

/// What a client does that is more than steps on one connection.
pub(crate) type Script = for<'a> fn(&'a mut Client) -> BoxFuture<'a, Result<(), Ending>>;

/// One step of a client on its connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads this many bytes, whatever they mean.
    Bytes(usize),
    /// Sends nothing more.
    Close,
    /// Goes on with a new connection, whatever became of the one before, which stays open.
    Connect,
    /// Says whether the connection goes on, was closed or was reset.
    End,
    /// Says that the connection ended, and not how: who resets it is a matter of who is faster.
    Ended,
    /// Reads the head of a response.
    Head,
    /// Drops the connection.
    Leave,
    /// Waits for what the application tells.
    Note,
    /// Reads one chunk of a body, or its end.
    Part,
    /// Reads a response like [`Response`](Self::Response), of which it does not matter in which
    /// words the server itself gives its reason.
    Refusal,
    /// Lets the application go on.
    Release,
    /// Reads a response, those before it that are informational included.
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

    /// Requests one after the other, each with its response, and how the connection stands then.
    pub(crate) fn asking(
        name: &'static str,
        app: App,
        requests: impl IntoIterator<Item = Step>,
    ) -> Self {
        let answered = |request| [request, Step::Response];
        let mut steps: Vec<_> = requests.into_iter().flat_map(answered).collect();
        steps.push(Step::End);
        Self::steps(name, app, steps)
    }

    /// Requests on a connection each, with their responses, and how each connection stands then.
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

/// A `GET` without anything that it need not have.
pub(crate) fn get(target: &str) -> Step {
    ask(&format!("GET {target}"), &[], "")
}

/// A request of HTTP/1.1: method and target, its fields beside `Host`, and a body with its length.
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

/// A `GET` of HTTP/1.0.
pub(crate) fn http10(target: &str, fields: &[&str]) -> Step {
    let mut text = format!("GET {target} HTTP/1.0\r\n");
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    Step::Send(text.into())
}
