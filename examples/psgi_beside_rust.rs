//! A Perl application under `/perl` of a Rust application: routes move over one by one.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin psgi_beside_rust -- \
//!     127.0.0.1:5000 examples/psgi/hello.psgi
//! curl http://127.0.0.1:5000/perl/ http://127.0.0.1:5000/rust
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::{Router, routing::get};
use greenroom::psgi::{AnswerBody, Connected, Gateway};
use greenroom::{App, BoxError, ConnectionInfo, IntoApp, LoopWatch, Pressure};
use greenroom::{RequestBody, Server};
use http_body_util::Either;
use tower_service::Service;

type Request = axum::http::Request<RequestBody>;
type Response<B> = axum::http::Response<B>;

/// The router, placed as `greenroom::serve` would, and the gateway to Perl's worker processes.
#[derive(Clone)]
struct Site<R> {
    rust: R,
    perl: Gateway,
}

/// An `App` makes a service for each connection.
impl<R> App for Site<R>
where
    R: App<Body: http_body::Body<Data = Bytes>>,
{
    type Body = Either<R::Body, AnswerBody>;
    type Service = Split<R::Service>;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        let (rust, perl) = (self.rust.connect(info), self.perl.connect(info));
        Split { rust, perl }
    }

    fn pressure(&self, pressure: Pressure) {
        self.rust.pressure(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        self.rust.watch_loop(name)
    }

    fn places_itself(&self) -> bool {
        true // both do: the router by its placement, Perl by its processes
    }
}

#[derive(Clone)]
struct Split<S> {
    rust: S,
    perl: Connected,
}

impl<S, B> Service<Request> for Split<S>
where
    S: Service<Request, Response = Response<B>, Error: Into<BoxError>, Future: 'static>,
{
    type Response = Response<Either<B, AnswerBody>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.rust.poll_ready(context).map_err(Into::into) // the gateway is always ready
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let path = request.uri().path();
        if path == "/perl" || path.starts_with("/perl/") {
            let response = self.perl.call(request);
            return Box::pin(async { Ok(response.await?.map(Either::Right)) });
        }
        let response = self.rust.call(request);
        Box::pin(async { Ok(response.await.map_err(Into::into)?.map(Either::Left)) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:5000".to_owned());
    let file = arguments.next().unwrap_or_else(|| "app.psgi".to_owned());
    let router = Router::new().route("/rust", get(|| async { "Hello from Rust\n" }));
    let perl = Gateway::builder(file)
        .mount("/perl")
        .workers(2)
        .start()
        .await?;
    let site = Site {
        rust: IntoApp::<_>::into_app(router, None),
        perl: perl.clone(),
    };

    let server = Server::builder()
        .listen(address)
        .shutdown_on_signals()
        .bind()?;
    for address in server.local_addresses() {
        println!("listening on {address}");
    }
    server.serve(site).await?;
    perl.shutdown().await; // after the server: its last requests may be Perl's
    Ok(())
}
