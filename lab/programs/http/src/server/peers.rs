//! hyper, axum and actix-web, each as its documentation has it.

use std::convert::Infallible;
use std::net::TcpListener as StdListener;
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use axum::serve::{Listener, ListenerExt};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use crate::apps::{ECHO, ECHO_WAIT, HELLO, echo, hello, router};
use crate::{Options, listen};

/// actix's default of 5 s would close idle connections before they are measured.
const ACTIX_KEEP_ALIVE: Duration = Duration::from_secs(75);

/// hyper's HTTP/1 server with a plain service.
pub(crate) async fn hyper(options: &Options) -> anyhow::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.pipeline_flush(options.pipeline_flush);
    let listener = TcpListener::from_std(listen(options.listen)?)?;
    if options.echo {
        serve(&http, listener, |_| async { Ok(echo().await) }).await
    } else {
        serve(&http, listener, |_| async { Ok(hello()) }).await
    }
}

async fn serve<F, R>(http: &http1::Builder, listener: TcpListener, handler: F) -> anyhow::Result<()>
where
    F: Fn(Request<Incoming>) -> R + Copy + Send + 'static,
    R: Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service_fn(handler)));
    }
}

/// axum's `Router`; with `--drain` it ends by `with_graceful_shutdown`.
pub(crate) async fn axum(options: &Options) -> anyhow::Result<()> {
    let listener = without_delay(TcpListener::from_std(listen(options.listen)?)?);
    let server = axum::serve(listener, router());
    if !options.drain {
        return Ok(server.await?);
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let told = async move {
        terminate.recv().await;
    };
    Ok(server.with_graceful_shutdown(told).await?)
}

/// Sets `TCP_NODELAY` on each connection.
pub(crate) fn without_delay(
    listener: TcpListener,
) -> impl Listener<Io = TcpStream, Addr = std::net::SocketAddr> {
    listener.tap_io(|stream| {
        // A connection that is gone already needs no option.
        let _ = stream.set_nodelay(true);
    })
}

/// actix-web with one worker.
pub(crate) fn actix(listener: StdListener) -> anyhow::Result<()> {
    let routes = || {
        App::new()
            .route("/hello", web::get().to(|| async { text(HELLO) }))
            .route("/", web::get().to(actix_echo))
    };
    let server = HttpServer::new(routes)
        .workers(1)
        .tcp_nodelay(true)
        .keep_alive(ACTIX_KEEP_ALIVE)
        .listen(listener)?;
    Ok(actix_web::rt::System::new().block_on(server.run())?)
}

async fn actix_echo() -> HttpResponse {
    actix_web::rt::time::sleep(ECHO_WAIT).await;
    text(ECHO)
}

fn text(body: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body(body)
}
