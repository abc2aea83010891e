//! hyper's HTTP/1 and HTTP/2 with a plain service, over tokio-rustls and without TLS.

use std::convert::Infallible;
use std::sync::Arc;

use clap::Parser;
use http_bench_apps::{TlsOptions, announce, hello, listen_on, runtime};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Http = auto::Builder<TokioExecutor>;

fn main() -> anyhow::Result<()> {
    let options = TlsOptions::parse();
    let acceptor = TlsAcceptor::from(Arc::new(config(&options)?));
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new());
    http.http2().timer(TokioTimer::new());
    runtime()?.block_on(async {
        let tls = TcpListener::from_std(listen_on(options.tls)?)?;
        let plain = TcpListener::from_std(listen_on(options.plain)?)?;
        announce(options.tls)?;
        tokio::try_join!(
            serve_tls(http.clone(), tls, acceptor),
            serve_plain(http, plain)
        )?;
        Ok(())
    })
}

fn config(options: &TlsOptions) -> anyhow::Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&options.certificate)?;
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = Ticketer::new()?;
    Ok(config)
}

async fn serve_tls(
    http: Http,
    listener: TcpListener,
    acceptor: TlsAcceptor,
) -> anyhow::Result<Infallible> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (http, acceptor) = (http.clone(), acceptor.clone());
        tokio::spawn(async move {
            // A client that does not finish its handshake has no response to miss.
            if let Ok(stream) = acceptor.accept(stream).await {
                connection(&http, stream).await;
            }
        });
    }
}

async fn serve_plain(http: Http, listener: TcpListener) -> anyhow::Result<Infallible> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let http = http.clone();
        tokio::spawn(async move { connection(&http, stream).await });
    }
}

async fn connection<S>(http: &Http, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(respond);
    // A client that has gone needs no response.
    let _ended = http.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(hello())
}
