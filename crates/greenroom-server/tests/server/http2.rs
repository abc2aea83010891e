//! HTTP/2 with prior knowledge: the same limits, time-outs, panics and drain as HTTP/1.1.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use greenroom_server::{BodyPace, BoxError, Limits, RequestBody};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep};

use crate::informational::told;
use crate::over;
use crate::panics::Log;
use crate::rig::{Body, Reply, Rig, app, assert_elapsed, local, measure, settle, streamed, text};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct OnThisThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}

struct Client {
    send: http2::SendRequest<Body>,
    /// Ends with the connection.
    connection: JoinHandle<hyper::Result<()>>,
}

impl Client {
    async fn connect(server: &Rig) -> Self {
        let stream = over::connect(&server.path).await;
        let io = TokioIo::new(stream);
        let (send, connection) = http2::handshake(OnThisThread, io).await.unwrap();
        Self {
            send,
            connection: spawn_local(connection),
        }
    }

    async fn try_send(
        &self,
        path: &str,
        body: Response<Body>,
    ) -> hyper::Result<Response<Incoming>> {
        let uri = format!("http://test{path}");
        let request = Request::post(uri).body(body.into_body()).unwrap();
        self.send.clone().send_request(request).await
    }

    async fn post(&self, path: &str, body: Response<Body>) -> (StatusCode, String) {
        let response = self.try_send(path, body).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        self.post(path, text("")).await
    }
}

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/echo" => {
            let body = request.into_body().map_err(Into::into);
            Ok(Response::new(body.boxed_unsync()))
        }
        "/measure" => measure(request).await,
        "/measure-slowly" => {
            request.extensions().get::<BodyPace>().unwrap().lift();
            measure(request).await
        }
        "/never" => std::future::pending().await,
        "/panic" => panic!("in the handler"),
        "/panic-in-body" => Ok(streamed(stream::poll_fn(|_| panic!("in the body")))),
        "/5" => {
            sleep(5 * SECOND).await;
            Ok(text("done"))
        }
        path => Ok(text(path.to_owned())),
    }
}

#[tokio::test(start_paused = true)]
async fn many_streams_are_served_at_once() {
    local(async {
        let server = Rig::start(app(handler));
        let client = Client::connect(&server).await;
        let since = Instant::now();
        let paths: Vec<_> = (0..100).map(|number| format!("/path/{number}")).collect();
        let slow = join_all((0..100).map(|_| client.get("/5")));
        let fast = join_all(paths.iter().map(|path| client.get(path)));
        let (slow, fast) = tokio::join!(slow, fast);
        assert!(
            slow.iter()
                .all(|(status, body)| *status == 200 && body == "done")
        );
        for (path, (status, body)) in paths.iter().zip(fast) {
            assert_eq!((status, &body), (StatusCode::OK, path));
        }
        assert!(since.elapsed() < 8 * SECOND, "{:?}", since.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_is_413_and_the_connection_goes_on() {
    local(async {
        let limits = Limits {
            body_bytes_max: 2_097_152,
            ..Limits::default()
        };
        let server = Rig::with(app(handler), |builder| builder.limits(limits));
        let client = Client::connect(&server).await;
        for (bytes, status) in [(2_097_152, 200), (2_097_153, 413)] {
            let body = text(vec![b'b'; bytes]);
            assert_eq!(client.post("/measure", body).await.0, status);
        }
        let parts = (0..3).map(|_| Ok(Frame::data(Bytes::from(vec![b'b'; 1_000_000]))));
        let unsized_body = streamed(stream::iter(parts.collect::<Vec<_>>()));
        assert_eq!(client.post("/measure", unsized_body).await.0, 413);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_nobody_reads_yet_hold_up_no_other() {
    local(async {
        let (tell, told) = watch::channel(false);
        let server = Rig::start(app(move |request| {
            let mut told = told.clone();
            async move {
                if request.uri().path() == "/told" {
                    told.wait_for(|is_told| *is_told).await?;
                }
                measure(request).await
            }
        }));
        let client = Client::connect(&server).await;
        let upload = || client.post("/told", text(vec![b'u'; 2_097_152]));
        let other = async {
            // By then all is sent that the server's windows let be sent.
            sleep(SECOND).await;
            assert_eq!(client.post("/", text("ten bytes!")).await.1, "10");
            tell.send_replace(true);
        };
        let (first, second, third, ()) = tokio::join!(upload(), upload(), upload(), other);
        for uploaded in [first, second, third] {
            assert_eq!(uploaded, (StatusCode::OK, "2097152".to_owned()));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_408_after_10_s() {
    local(async {
        let server = Rig::start(app(handler));
        let client = Client::connect(&server).await;
        let since = Instant::now();
        let never = StreamBody::new(stream::pending::<Result<Frame<Bytes>, BoxError>>());
        let body = Response::new(never.boxed_unsync());
        assert_eq!(client.post("/measure", body).await.0, 408);
        assert_elapsed(since, 10 * SECOND);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

/// Six bytes each 4 s, for two hours.
fn slowly() -> Response<Body> {
    streamed(stream::iter(0..1_800).then(|_| async {
        sleep(4 * SECOND).await;
        Ok(Frame::data(Bytes::from_static(b"6bytes")))
    }))
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_hours_once_its_response_has_begun() {
    local(async {
        let server = Rig::start(app(handler));
        let client = Client::connect(&server).await;
        let (status, echoed) = client.post("/echo", slowly()).await;
        assert_eq!((status, echoed), (StatusCode::OK, "6bytes".repeat(1_800)));
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_hours_where_the_route_says_so() {
    local(async {
        let server = Rig::start(app(handler));
        let client = Client::connect(&server).await;
        let measured = client.post("/measure-slowly", slowly()).await;
        assert_eq!(measured, (StatusCode::OK, "10800".to_owned()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_500_and_the_connection_goes_on() {
    Log::capture();
    local(async {
        let server = Rig::start(app(handler));
        let client = Client::connect(&server).await;
        assert_eq!(client.get("/panic").await.0, 500);
        // The reset may overtake the head.
        if let Ok(response) = client.try_send("/panic-in-body", text("")).await {
            assert!(response.into_body().collect().await.is_err());
        }
        Log::assert_line(&["ERROR", "in the handler", "POST /panic"]);
        Log::assert_line(&["ERROR", "in the body", "POST /panic-in-body"]);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_75_s_and_a_busy_one_is_not() {
    local(async {
        let server = Rig::start(app(handler));
        let idle = Client::connect(&server).await;
        let busy = Client::connect(&server).await;
        let _waits = spawn_local({
            let send = busy.send.clone();
            async move {
                Client {
                    send,
                    connection: spawn_local(async { Ok(()) }),
                }
                .get("/never")
                .await
            }
        });
        assert_eq!(idle.get("/").await.0, 200);
        let since = Instant::now();
        idle.connection.await.unwrap().unwrap();
        assert!(
            (75..152).contains(&since.elapsed().as_secs()),
            "{:?}",
            since.elapsed()
        );
        sleep(300 * SECOND).await;
        assert_eq!(busy.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_streams_finish_and_takes_no_new_ones() {
    local(async {
        let server = Rig::start(app(handler));
        let client = Client::connect(&server).await;
        let drain = async {
            sleep(SECOND).await;
            server.handle.drain();
            sleep(SECOND).await;
            assert!(client.try_send("/late", text("")).await.is_err());
        };
        let (response, ()) = tokio::join!(client.get("/5"), drain);
        assert_eq!(response.1, "done");
        client.connection.await.unwrap().unwrap();
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn handlers_that_ask_are_told_of_the_drain() {
    local(async {
        let server = Rig::start(app(crate::drain::handler));
        let client = Client::connect(&server).await;
        let since = Instant::now();
        let drain = async {
            sleep(SECOND).await;
            server.handle.drain();
        };
        let asked = async { tokio::join!(client.get("/told"), client.get("/notice")) };
        let ((told, streamed), ()) = tokio::join!(asked, drain);
        assert_eq!((told.1.as_str(), streamed.1.as_str()), ("told", "the last"));
        client.connection.await.unwrap().unwrap();
        assert_eq!(server.ended().await.aborted, []);
        assert!(since.elapsed() < 2 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn streams_that_outlast_the_drain_are_aborted_and_named() {
    local(async {
        for abort in [false, true] {
            let server = Rig::start(app(handler));
            let client = Client::connect(&server).await;
            let handle = server.handle.clone();
            let ending = async {
                settle().await;
                if abort {
                    handle.abort();
                } else {
                    handle.drain();
                }
            };
            let since = Instant::now();
            let (response, ()) = tokio::join!(client.try_send("/never", text("")), ending);
            assert!(response.is_err());
            let seconds = if abort { 0 } else { 30 };
            assert_elapsed(since, seconds * SECOND);
            let cut = server.ended().await.aborted;
            let routes: Vec<_> = cut.iter().map(|cut| cut.route.as_str()).collect();
            assert_eq!(routes, ["POST /never"]);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_sends_no_informational_response() {
    local(async {
        let server = Rig::start(app(told));
        let client = Client::connect(&server).await;
        assert_eq!(client.get("/").await, (StatusCode::OK, "Now".to_owned()));
    })
    .await;
}
