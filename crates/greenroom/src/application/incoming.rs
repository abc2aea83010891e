use std::any::Any;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::{ConnectInfo, Connected, IntoMakeServiceWithConnectInfo};
use axum::middleware::AddExtension;
use axum::serve::Listener;
use bytes::Bytes;
use greenroom_server::{App, BoxError, ConnectionInfo, LoopWatch, Pressure};
use greenroom_stage::ClientKey;
use http::{Request, Response};
use parking_lot::Mutex;
use tower_service::Service;

use super::adapted::shed_under;
use super::for_client::ForClient;
use super::{IntoApp, OfIncomingStreams};
use crate::loop_watch;
use crate::placing::{ByRoute, Placed as _, Routed, by_route_of};

/// A connection that was just accepted by a listener `L`, as axum's [`Connected`] sees it.
///
/// It replaces `axum::serve::IncomingStream`, which only axum can make: a type that implements
/// `Connected<axum::serve::IncomingStream<'_, L>>` is served when it implements
/// `Connected<greenroom::IncomingStream<'_, L>>` instead; only the `use` changes. With it,
/// connections are accepted one by one on the runtime that calls [`serve`](crate::serve()), and
/// then served by the loops as all others.
///
/// The credentials of the peer of a Unix socket, for a handler:
///
/// ```
/// use axum::extract::connect_info::{ConnectInfo, Connected};
/// use axum::{Router, routing::get};
/// use greenroom::IncomingStream; // was: axum::serve::IncomingStream
/// use tokio::net::{UnixListener, unix::UCred};
///
/// #[derive(Clone)]
/// struct Peer(Option<UCred>);
///
/// impl Connected<IncomingStream<'_, UnixListener>> for Peer {
///     fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
///         Self(stream.io().peer_cred().ok())
///     }
/// }
///
/// async fn whoami(ConnectInfo(Peer(peer)): ConnectInfo<Peer>) -> String {
///     peer.map_or("nobody".into(), |peer| peer.uid().to_string())
/// }
///
/// # async fn serve() -> std::io::Result<()> {
/// let app = Router::new().route("/", get(whoami));
/// let listener = UnixListener::bind("/run/app.sock")?;
/// greenroom::serve(listener, app.into_make_service_with_connect_info::<Peer>()).await
/// # }
/// ```
#[derive(Debug)]
pub struct IncomingStream<'a, L: Listener> {
    io: &'a L::Io,
    remote_addr: L::Addr,
}

impl<L: Listener> IncomingStream<'_, L> {
    /// The stream that was accepted.
    #[must_use]
    pub fn io(&self) -> &L::Io {
        self.io
    }

    /// The address that it comes from.
    #[must_use]
    pub fn remote_addr(&self) -> &L::Addr {
        &self.remote_addr
    }
}

/// Looks at each connection that a listener accepts, and makes the value that its loop is given
/// with it.
pub struct Introduction<L: Listener>(Box<Look<L>>);

type Look<L> = dyn FnMut(IncomingStream<'_, L>) -> Attached + Send;
type Attached = Arc<dyn Any + Send + Sync>;

impl<L: Listener> Introduction<L> {
    pub(crate) fn of(&mut self, io: &L::Io, remote_addr: L::Addr) -> Attached {
        (self.0)(IncomingStream { io, remote_addr })
    }
}

impl<L: Listener> fmt::Debug for Introduction<L> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Introduction").finish_non_exhaustive()
    }
}

impl<L, S, B, C> IntoApp<OfIncomingStreams, L> for IntoMakeServiceWithConnectInfo<S, C>
where
    L: Listener,
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    C: for<'a> Connected<IncomingStream<'a, L>>,
{
    type App = Introduced<AddExtension<S, ConnectInfo<C>>>;

    fn into_app(self, client_key: Option<ClientKey>) -> Self::App {
        Introduced {
            placed: by_route_of::<IntoMakeServiceWithConnectInfo<Router, C>>(&self),
            client_key,
            made: std::marker::PhantomData,
        }
    }

    fn introduction(&self) -> Option<Introduction<L>> {
        let mut make = self.clone();
        let introduce = move |stream: IncomingStream<'_, L>| -> Attached {
            let mut making = pin!(make.call(stream));
            // The future of axum's make-service has its service when it is returned.
            match making
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(Ok(service)) => Arc::new(Mutex::new(Some(service))),
                Poll::Pending => unreachable!("a make-service of axum is always ready"),
            }
        };
        Some(Introduction(Box::new(introduce)))
    }
}

/// An [`App`] whose services were made where the connections were accepted, and came with them.
#[derive(Debug)]
pub struct Introduced<S> {
    placed: ByRoute,
    client_key: Option<ClientKey>,
    made: std::marker::PhantomData<fn() -> S>,
}

impl<S> Clone for Introduced<S> {
    fn clone(&self) -> Self {
        Self {
            placed: self.placed.clone(),
            client_key: self.client_key.clone(),
            made: std::marker::PhantomData,
        }
    }
}

impl<S, B> App for Introduced<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Body = Body;
    type Service = ForClient<Routed<S>>;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        let attached = info.attached.as_ref();
        let made = attached.and_then(|attached| attached.downcast_ref::<Mutex<Option<S>>>());
        let made = made.and_then(|made| made.lock().take());
        let service = made.expect("whoever accepted the connection made its service");
        ForClient::new(self.placed.place(service), info, self.client_key.clone())
    }

    fn pressure(&self, pressure: Pressure) {
        shed_under(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        Some(loop_watch::watch(name))
    }
}
