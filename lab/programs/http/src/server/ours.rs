//! Greenroom, on one loop and without an access log, as its peers have none.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use greenroom::{Address, OnLoops, Server, Tls};
use rustls::crypto::ring;
use tower::service_fn;

use crate::apps::{echo, hello, router};
use crate::{Kind, Options};

pub(crate) async fn serve(options: &Options) -> anyhow::Result<()> {
    let mut server = Server::builder().loops(NonZeroUsize::MIN).access_log(false);
    if options.drain {
        server = server.shutdown_on_signals();
    }
    server = match (options.tls, &options.certificate, &options.key) {
        (Some(address), Some(certificate), Some(key)) => {
            let mut tls = Tls::builder().certificate(certificate, key);
            if options.ring {
                tls = tls.provider(Arc::new(ring::default_provider()));
            }
            let plain = Address::from(options.listen);
            let server = server.listen(Address::from(address)).listen_plain(plain);
            server.tls(tls.build()?)
        }
        _ => server.listen(Address::from(options.listen)),
    };
    let server = server.bind()?;
    if options.kind == Kind::GreenroomAxum {
        server.serve(router()).await?;
    } else if options.echo {
        let app = |_: Request<Body>| async { Ok::<_, Infallible>(echo::<Body>().await) };
        server.serve(service_fn(app)).await?;
    } else {
        let app = |_: Request<Body>| async { Ok::<_, Infallible>(hello::<Body>()) };
        let app = service_fn(app);
        if options.on_loops {
            server.serve(OnLoops(app)).await?;
        } else {
            server.serve(app).await?;
        }
    }
    Ok(())
}
