//! `greenroom status`: what the operators' page shows, on a terminal.

mod fault;
mod target;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use crate::args::StatusArgs;
use crate::exit;
use fault::Fault;
pub(crate) use target::Target;

/// The largest status that is read.
const STATUS_BYTES_MAX: usize = 64 << 20;

/// Moves to the upper left and clears the terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: &StatusArgs) -> ExitCode {
    loop {
        let shown = shown(args).await;
        let is_faulty = shown.is_err();
        let printed = match shown {
            Ok(text) => print(args, &text),
            Err(fault) => {
                exit::complain(fault.about(&args.address));
                Ok(())
            }
        };
        if let Err(error) = printed {
            return exit::with_message(exit::FAILED, error);
        }
        match args.watch {
            Some(interval) => sleep(interval).await,
            None if is_faulty => return ExitCode::from(exit::FAILED),
            None => return ExitCode::SUCCESS,
        }
    }
}

fn print(args: &StatusArgs, text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.watch.is_some() && !args.json && out.is_terminal() {
        out.write_all(CLEAR.as_bytes())?;
    }
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Asks for the status, and checks that it is one.
async fn shown(args: &StatusArgs) -> Result<String, Fault> {
    let (path, media_type) = if args.json {
        ("/greenroom/status", "application/json")
    } else {
        ("/greenroom/status.txt", "text/plain")
    };
    let asked = timeout(args.timeout, ask(&args.address, path));
    let response = asked.await.map_err(|_| Fault::Late(args.timeout))??;
    let status = response.status();
    let is_type = |value: &http::HeaderValue| value.as_bytes().starts_with(media_type.as_bytes());
    let is_right = response.headers().get(CONTENT_TYPE).is_some_and(is_type);
    let text = String::from_utf8_lossy(response.body()).into_owned();
    let is_own = if args.json {
        text.contains("\"loops\"")
    } else {
        text.starts_with("greenroom ")
    };
    if status.is_success() && is_right && is_own {
        return Ok(text);
    }
    Err(Fault::Other { path, status })
}

async fn ask(target: &Target, path: &str) -> Result<Response<Bytes>, Fault> {
    match target {
        Target::Tcp { authority, .. } => {
            let stream = TcpStream::connect(&**authority).await;
            exchange(stream.map_err(Fault::Connect)?, authority, path).await
        }
        Target::Unix(file) => {
            let stream = UnixStream::connect(file).await;
            exchange(stream.map_err(Fault::Connect)?, "localhost", path).await
        }
    }
}

async fn exchange<S>(stream: S, host: &str, path: &str) -> Result<Response<Bytes>, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driving = tokio::spawn(connection);
    let request = Request::get(path)
        .header(HOST, host)
        .body(Empty::<Bytes>::new());
    let response = sender
        .send_request(request.map_err(Fault::Request)?)
        .await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, STATUS_BYTES_MAX).collect().await;
    driving.abort();
    let body = body.map_err(|error| Fault::Body(error.to_string()))?;
    Ok(Response::from_parts(head, body.to_bytes()))
}
