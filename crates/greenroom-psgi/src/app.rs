//! The gateway as the server's application.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use greenroom_server::{App, ConnectionInfo, RequestBody};
use greenroom_timing::tell_route;
use http::{Request, Response};
use tower_service::Service;

use crate::body::ResponseBody;
use crate::environment::{ConnectionEnvironment, is_below};
use crate::exchange::{self, Exchange};
use crate::gateway::Gateway;

/// Several applications, each with workers of its own, behind one server. A request goes to the one
/// with the longest mount that its path is below; without one the response is 404.
///
/// ```
/// use greenroom_psgi::{Gateway, Mounts};
///
/// # fn mounted(shop: Gateway, rest: Gateway) -> Mounts {
/// Mounts::new([rest, shop])
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mounts(Arc<[Gateway]>);

impl Mounts {
    /// Combines these applications, given in any order. Of two with the same mount the first gets
    /// the requests.
    #[must_use]
    pub fn new(gateways: impl IntoIterator<Item = Gateway>) -> Self {
        let mut gateways: Vec<Gateway> = gateways.into_iter().collect();
        gateways.sort_by_key(|gateway| std::cmp::Reverse(gateway.mount().len()));
        Self(gateways.into())
    }

    /// Returns the applications, the longest mounts first.
    #[must_use]
    pub fn gateways(&self) -> &[Gateway] {
        &self.0
    }
}

impl From<Gateway> for Mounts {
    fn from(gateway: Gateway) -> Self {
        Self::new([gateway])
    }
}

impl App for Mounts {
    type Body = ResponseBody;
    type Service = Connected;

    fn connect(&self, info: &ConnectionInfo) -> Connected {
        Connected {
            mounts: self.clone(),
            connection: Rc::new(ConnectionEnvironment::new(info)),
        }
    }

    /// Always `true`: the worker processes do the work, so the server needs no placement.
    fn places_itself(&self) -> bool {
        true
    }
}

impl App for Gateway {
    type Body = ResponseBody;
    type Service = Connected;

    fn connect(&self, info: &ConnectionInfo) -> Connected {
        Mounts::from(self.clone()).connect(info)
    }

    /// Always `true`: the worker processes do the work, so the server needs no placement.
    fn places_itself(&self) -> bool {
        true
    }
}

/// The service of one connection.
#[derive(Clone, Debug)]
pub struct Connected {
    mounts: Mounts,
    connection: Rc<ConnectionEnvironment>,
}

impl Service<Request<RequestBody>> for Connected {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let path = request.uri().path();
        let gateways = self.mounts.gateways().iter();
        let mut below = gateways.filter(|gateway| is_below(gateway.mount(), path));
        let Some(gateway) = below.next() else {
            return Box::pin(async { Ok(exchange::not_found()) });
        };
        tell_route(gateway.route());
        let (connection, script_bytes) = (Rc::clone(&self.connection), gateway.mount().len());
        let exchange = Exchange::new(gateway.clone(), connection, script_bytes);
        Box::pin(async move { Ok(exchange.run(request).await) })
    }
}
