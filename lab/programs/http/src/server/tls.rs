//! hyper over tokio-rustls, with HTTP/1 and HTTP/2, and the same without TLS.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::apps::hello;
use crate::{Options, listen};

type Http = auto::Builder<TokioExecutor>;

pub(crate) async fn serve(options: &Options) -> anyhow::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(config(options)?));
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new());
    http.http2().timer(TokioTimer::new());
    let tls = TcpListener::from_std(listen(options.tls.context("--tls is missing")?)?)?;
    let plain = TcpListener::from_std(listen(options.listen)?)?;
    let over_tls = serve_on(http.clone(), tls, Some(acceptor));
    tokio::try_join!(over_tls, serve_on(http, plain, None))?;
    Ok(())
}

fn config(options: &Options) -> anyhow::Result<ServerConfig> {
    let file = |path: &Option<_>| path.clone().context("--certificate or --key is missing");
    let chain = CertificateDer::pem_file_iter(file(&options.certificate)?)?;
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(file(&options.key)?)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = Ticketer::new()?;
    Ok(config)
}

async fn serve_on(
    http: Http,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
) -> anyhow::Result<Infallible> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (http, acceptor) = (http.clone(), acceptor.clone());
        tokio::spawn(async move {
            match acceptor {
                None => connection(&http, stream).await,
                // A client that does not finish its handshake has no response to miss.
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(&http, stream).await;
                    }
                }
            }
        });
    }
}

async fn connection<S>(http: &Http, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service =
        service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(hello::<Full<Bytes>>()) });
    // A client that has gone needs no response.
    let _ended = http.serve_connection(TokioIo::new(stream), service).await;
}
