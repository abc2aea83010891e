//! The forms that users of axum type, with `greenroom` for `axum`: each compiles, and serves.

use std::future::{IntoFuture, pending, ready};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::handler::{Handler, HandlerWithoutStateExt};
use axum::routing::get;
use axum::serve::ListenerExt;
use greenroom::{Address, Limits, Server};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, oneshot};

use crate::rig::{any_port, get as fetch, within};

async fn handler() -> &'static str {
    "hello"
}

fn app() -> Router {
    Router::new().route("/", get(handler))
}

async fn bound() -> (TcpListener, String) {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

async fn says_hello(url: String) {
    assert_eq!(fetch(url).await.1, "hello");
}

/// The tail expression of an `async fn main() -> io::Result<()>`.
async fn tail(listener: TcpListener) -> io::Result<()> {
    greenroom::serve(listener, app()).await
}

/// Its last statement but one.
async fn question_mark(listener: TcpListener) -> io::Result<()> {
    greenroom::serve(listener, app()).await?;
    Ok(())
}

async fn boxed(listener: TcpListener) -> Result<(), Box<dyn std::error::Error>> {
    greenroom::serve(listener, app()).await?;
    Ok(())
}

async fn anyhow(listener: TcpListener) -> anyhow::Result<()> {
    greenroom::serve(listener, app())
        .with_graceful_shutdown(pending())
        .await?;
    Ok(())
}

async fn unwrapped(listener: TcpListener) {
    greenroom::serve(listener, app()).await.unwrap();
}

#[tokio::test]
async fn awaited_in_functions() {
    within(async {
        let (listener, url) = bound().await;
        let serving = tokio::spawn(tail(listener));
        says_hello(url).await;
        serving.abort();
        let (listener, url) = bound().await;
        let serving = tokio::spawn(question_mark(listener));
        says_hello(url).await;
        serving.abort();
        let (listener, url) = bound().await;
        tokio::select! {
            _ = boxed(listener) => unreachable!("it serves for ever"),
            () = says_hello(url) => {}
        }
        let (listener, url) = bound().await;
        let serving = tokio::spawn(anyhow(listener));
        says_hello(url).await;
        serving.abort();
        let (listener, url) = bound().await;
        let serving = tokio::spawn(unwrapped(listener));
        says_hello(url).await;
        serving.abort();
    })
    .await;
}

#[test]
fn from_a_multi_threaded_main() {
    #[tokio::main]
    async fn main() -> io::Result<()> {
        let (listener, url) = bound().await;
        tokio::spawn(async move { greenroom::serve(listener, app()).await });
        says_hello(url).await;
        Ok(())
    }
    main().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn spawned() {
    within(async {
        let (listener, url) = bound().await;
        let serving = tokio::spawn(greenroom::serve(listener, app()).into_future());
        says_hello(url).await;
        serving.abort();
        let (listener, url) = bound().await;
        let serve = greenroom::serve(listener, app());
        let serving: tokio::task::JoinHandle<io::Result<()>> =
            tokio::spawn(async move { serve.await });
        says_hello(url).await;
        serving.abort();
        let (listener, url) = bound().await;
        let serve = greenroom::serve(listener, app()).with_graceful_shutdown(pending());
        let serving = tokio::spawn(async { serve.await.unwrap() });
        says_hello(url).await;
        serving.abort();
    })
    .await;
}

#[tokio::test]
async fn beside_others() {
    within(async {
        let (listener, url) = bound().await;
        tokio::select! {
            ended = greenroom::serve(listener, app()).into_future() => ended.unwrap(),
            () = says_hello(url) => {}
        }
        let (listener, url) = bound().await;
        let mut serving = greenroom::serve(listener, app()).into_future();
        tokio::select! {
            ended = &mut serving => ended.unwrap(),
            () = says_hello(url) => {}
        }
        drop(serving);
        let ((first, first_url), (second, second_url)) = (bound().await, bound().await);
        let (end, ended) = oneshot::channel::<()>();
        let both = async {
            tokio::try_join!(
                greenroom::serve(first, app())
                    .with_graceful_shutdown(async { drop(ended.await) })
                    .into_future(),
                greenroom::serve(second, app())
                    .with_graceful_shutdown(ready(()))
                    .into_future(),
            )
        };
        let asked = async {
            says_hello(first_url).await;
            drop((end, second_url));
        };
        let (both, ()) = tokio::join!(both, asked);
        both.unwrap();
    })
    .await;
}

#[test]
fn made_outside_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (listener, url) = runtime.block_on(bound());
    let serving = greenroom::serve(listener, app()).into_future();
    runtime.block_on(async {
        tokio::select! {
            ended = serving => ended.unwrap(),
            () = says_hello(url) => {}
        }
    });
}

/// The forms of axum's own test `if_it_compiles_it_works`.
#[allow(
    dead_code,
    unused_must_use,
    clippy::too_many_lines,
    reason = "it is compiled, not run"
)]
async fn if_it_compiles_it_works() {
    async fn tcp() -> TcpListener {
        TcpListener::bind(any_port()).await.unwrap()
    }
    async fn tapped() -> impl axum::serve::Listener<Io = tokio::net::TcpStream, Addr = SocketAddr> {
        tcp().await.tap_io(|tcp| tcp.set_nodelay(true).unwrap())
    }
    fn unix() -> UnixListener {
        UnixListener::bind("").unwrap()
    }
    greenroom::serve(tcp().await, app());
    greenroom::serve(tapped().await, app()).await.unwrap();
    greenroom::serve(unix(), app());
    greenroom::serve(tcp().await, app().into_make_service());
    greenroom::serve(tapped().await, app().into_make_service());
    greenroom::serve(unix(), app().into_make_service());
    let told = || app().into_make_service_with_connect_info::<SocketAddr>();
    greenroom::serve(tcp().await, told());
    greenroom::serve(tapped().await, told());
    greenroom::serve(unix(), told());
    greenroom::serve(tcp().await, get(handler));
    greenroom::serve(tapped().await, get(handler));
    greenroom::serve(unix(), get(handler));
    greenroom::serve(tcp().await, get(handler).into_make_service());
    let told = || get(handler).into_make_service_with_connect_info::<SocketAddr>();
    greenroom::serve(tcp().await, told());
    greenroom::serve(tapped().await, told());
    greenroom::serve(tcp().await, handler.into_service());
    greenroom::serve(tapped().await, handler.into_service());
    greenroom::serve(unix(), handler.into_service());
    greenroom::serve(tcp().await, handler.with_state(()));
    greenroom::serve(tapped().await, handler.with_state(()));
    greenroom::serve(tcp().await, handler.into_make_service());
    greenroom::serve(unix(), handler.into_make_service());
    let told = || handler.into_make_service_with_connect_info::<SocketAddr>();
    greenroom::serve(tcp().await, told());
    greenroom::serve(tapped().await, told());
}

#[tokio::test]
async fn the_settings_of_a_server() {
    within(async {
        let (listener, url) = bound().await;
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let serve = greenroom::serve(listener, app())
            .limits(Limits {
                target_bytes_max: 10,
                drain_deadline: Duration::from_secs(1),
                ..Limits::default()
            })
            .loops(NonZeroUsize::MIN)
            .access_log(true)
            .half_close(true)
            .with_graceful_shutdown(async { drop(ended.await) });
        assert_eq!(serve.local_addr().unwrap(), address);
        let shown = format!("{serve:?}");
        assert!(shown.contains("TcpListener"), "{shown}");
        assert!(shown.contains("target_bytes_max: 10"), "{shown}");
        let serving = tokio::spawn(serve.report());
        says_hello(url.clone()).await;
        assert_eq!(fetch(format!("{url}0123456789")).await.0, 414);
        end.send(()).unwrap();
        assert_eq!(serving.await.unwrap().unwrap().aborted, []);
    })
    .await;
}

/// A request that is not done by then is named.
#[tokio::test]
async fn the_deadline_of_a_drain() {
    within(async {
        let (listener, url) = bound().await;
        let begun = Arc::new(Notify::new());
        let tell = Arc::clone(&begun);
        let never = || async move {
            tell.notify_one();
            pending::<()>().await;
        };
        let serve = greenroom::serve(listener, Router::new().route("/", get(never)))
            .limits(Limits {
                drain_deadline: Duration::ZERO,
                ..Limits::default()
            })
            .with_graceful_shutdown(async move { begun.notified().await });
        let serving = tokio::spawn(serve.report());
        let asked = tokio::spawn(fetch(url));
        let report = serving.await.unwrap().unwrap();
        let routes: Vec<_> = report
            .aborted
            .iter()
            .map(|cut| cut.route.as_str())
            .collect();
        assert_eq!(routes, ["GET /"]);
        assert!(asked.await.is_err(), "it was aborted");
    })
    .await;
}

/// An address that cannot be listened on, as an error of `std` and as one of ours.
#[test]
fn errors_are_those_of_io() {
    let taken = std::net::TcpListener::bind(any_port()).unwrap();
    let address = taken.local_addr().unwrap();
    let failed = || Server::builder().listen(address).bind().unwrap_err();
    let said = failed().to_string();
    let error = io::Error::from(failed());
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert_eq!(error.to_string(), said);
    let inner = error.into_inner().unwrap().downcast::<greenroom::Error>();
    let greenroom::Error::Bind { address: named, .. } = *inner.unwrap() else {
        panic!("an address could not be bound")
    };
    assert_eq!(named, Address::Tcp(address));
}

/// A text that is no address and a limit that is not allowed are errors that say what is.
#[test]
fn what_cannot_be_set_is_told_when_the_server_binds() {
    let error = Server::builder().listen("localhost").bind().unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("`localhost`") && said.contains("[::1]:5000"),
        "{said}"
    );
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidInput);
    let limits = Limits {
        fields_max: 300,
        ..Limits::default()
    };
    let builder = Server::builder().listen("127.0.0.1:0").limits(limits);
    let said = builder.bind().unwrap_err().to_string();
    assert_eq!(said, "fields_max: 300 is not allowed; allowed: 1 to 256");
}

#[cfg(feature = "admin")]
#[tokio::test]
async fn an_address_for_operators() {
    within(async {
        let (listener, url) = bound().await;
        let free = std::net::TcpListener::bind(any_port()).unwrap();
        let admin = free.local_addr().unwrap();
        let serve = greenroom::serve(listener, app()).admin(admin);
        let refused = serve.await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        drop(url);
        let (listener, url) = bound().await;
        drop(free);
        let serve = greenroom::serve(listener, app()).admin(admin);
        let serving = tokio::spawn(async { serve.await });
        says_hello(url).await;
        let (status, shown) = fetch(format!("http://{admin}/greenroom/status")).await;
        assert_eq!(status, 200);
        assert!(shown.contains("\"loops\""), "{shown}");
        assert_eq!(
            fetch(format!("http://{admin}/greenroom/metrics")).await.0,
            200
        );
        serving.abort();
    })
    .await;
}
