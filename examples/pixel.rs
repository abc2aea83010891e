//! A pixel server for an ad-blocking name server: it takes the place of dbab-svr.
//!
//! The name server resolves an advertiser's name to one of this machine's addresses. Here every
//! request there gets one transparent pixel, and a browser that looks for its proxy's
//! configuration finds it.
//!
//! ```sh
//! printf '# where to listen\n127.0.0.1:8080\n' > dbab.addr
//! cargo run --release -p greenroom --example pixel -- dbab.addr --proxy 192.168.2.1
//! curl -i http://127.0.0.1:8080/any/advertisement.js
//! curl -i http://127.0.0.1:8080/proxy.pac
//! ```

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::any;
use clap::Parser;

const PIXEL: &[u8; 43] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff\
    \x21\xf9\x04\x01\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b";

/// Respond to every request with a transparent pixel, except for a browser's proxy configuration
#[derive(Parser)]
struct Args {
    /// The addresses to listen on: IP, IP:PORT or [IPV6]:PORT, one a line; # begins a comment
    #[arg(default_value = "/etc/dbab/dbab.addr")]
    file: PathBuf,

    /// The port of the lines that name none
    #[arg(long, default_value_t = 80)]
    port: u16,

    /// The proxy (on port 3128) that /proxy.pac and /wpad.dat name: an IP address or a host name
    /// [default: the first address of the file]
    #[arg(long, value_parser = proxy_host)]
    proxy: Option<String>,
}

/// The loops have runtimes of their own; this one only waits for them.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let addresses = read_addresses(&args.file, args.port)?;
    let proxy = match args.proxy {
        Some(proxy) => proxy,
        None => default_proxy(addresses[0].ip())?,
    };
    // A log line for each advertisement that was not shown would only wear out the disk.
    let mut server = greenroom::Server::builder().access_log(false);
    for address in addresses {
        server = server.listen(address);
    }
    let server = server.bind()?;
    for address in server.local_addresses() {
        tracing::info!("listening on {address}");
    }
    server.serve(application(&proxy)).await?;
    Ok(())
}

fn application(proxy: &str) -> Router {
    let script =
        format!("function FindProxyForURL(url, host) {{ return \"PROXY {proxy}:3128; DIRECT\"; }}");
    let configuration = any(async || {
        let headers = [(CONTENT_TYPE, "application/x-ns-proxy-autoconfig")];
        (headers, script)
    });
    Router::new()
        .route("/proxy.pac", configuration.clone())
        .route("/wpad.dat", configuration)
        .fallback(async || {
            let headers = [
                (CONTENT_TYPE, "image/gif"),
                (CACHE_CONTROL, "public, max-age=31536000"),
            ];
            (headers, PIXEL)
        })
}

/// The addresses of the file, at least one.
fn read_addresses(file: &Path, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let mut addresses = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            match parse_address(line, port) {
                Some(address) => addresses.push(address),
                None => bail!(
                    "{name}:{}: `{line}` is no address: allowed are IP, IP:PORT and [IPV6]:PORT",
                    index + 1
                ),
            }
        }
    }
    if addresses.is_empty() {
        bail!("{name} names no address: at least one line must hold IP, IP:PORT or [IPV6]:PORT");
    }
    Ok(addresses)
}

fn parse_address(line: &str, port: u16) -> Option<SocketAddr> {
    let bare = line.parse().map(|ip: IpAddr| SocketAddr::new(ip, port));
    bare.or_else(|_| line.parse()).ok()
}

fn default_proxy(first: IpAddr) -> anyhow::Result<String> {
    if first.is_unspecified() {
        bail!("no browser can connect to {first}: name the proxy's address with --proxy");
    }
    Ok(bracketed(first))
}

/// The proxy as it stands before `:3128`. It becomes part of a script: nothing that could end the
/// string there may pass.
fn proxy_host(text: &str) -> Result<String, &'static str> {
    let of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    match text.parse() {
        Ok(ip) => Ok(bracketed(ip)),
        Err(_) if !text.is_empty() && text.bytes().all(of_a_name) => Ok(text.to_owned()),
        Err(_) => Err("allowed are an IP address or a host name, without a port"),
    }
}

fn bracketed(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("dbab.addr");
        fs::write(&file, text).unwrap();
        let addresses = read_addresses(&file, 80).map_err(|error| format!("{error:#}"))?;
        Ok(addresses.iter().map(SocketAddr::to_string).collect())
    }

    #[test]
    fn file_holds_addresses_with_and_without_ports() {
        let text = "# ours\n192.0.2.1\n\n  192.0.2.2:8080 # the second\n::1\r\n[::1]:81\n";
        let expected = ["192.0.2.1:80", "192.0.2.2:8080", "[::1]:80", "[::1]:81"];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn bad_line_is_named() {
        let error = read("# comment\n192.0.2.1:99999\n").unwrap_err();
        assert!(error.contains("dbab.addr:2: `192.0.2.1:99999`"), "{error}");
        assert!(error.contains("[IPV6]:PORT"), "{error}");
    }

    #[test]
    fn file_without_address_is_refused() {
        assert!(read("# nothing\n\n").unwrap_err().contains("no address"));
    }

    #[test]
    fn proxy_cannot_leave_its_string() {
        assert_eq!(proxy_host("2001:db8::1").as_deref(), Ok("[2001:db8::1]"));
        assert_eq!(proxy_host("proxy.lan").as_deref(), Ok("proxy.lan"));
        assert!(proxy_host("a\"; alert(1); \"").is_err());
        assert!(proxy_host("192.0.2.1:3128").is_err());
        assert!(default_proxy("::".parse().unwrap()).is_err());
    }
}
