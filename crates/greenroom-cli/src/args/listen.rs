//! The flags that say where to listen.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use greenroom::Address;

use super::value;

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 5000;

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
pub(crate) struct ListenArgs {
    /// Where to listen: IP:PORT, [IPV6]:PORT, :PORT for all IPv4 addresses, unix:PATH or /PATH; may be repeated
    ///
    /// Port 0 is a free port, which the log names. In the environment, addresses are separated by
    /// commas.
    #[arg(
        short,
        long,
        env = "GREENROOM_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:5000",
        value_delimiter = ',',
        value_parser = value::address
    )]
    listen: Vec<Address>,

    /// Listen on this port, of --host, instead of --listen (default with --host: 5000)
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,

    /// Listen on this IP address, at --port, instead of --listen (default with --port: 127.0.0.1)
    ///
    /// All IPv4 addresses are 0.0.0.0, all addresses ::.
    #[arg(short = 'o', long, value_name = "IP", value_parser = value::ip)]
    host: Option<IpAddr>,

    /// Wherever it listens, connections begin with a header of the PROXY protocol, and are whose it says
    ///
    /// As HAProxy's send-proxy and send-proxy-v2 and nginx's proxy_protocol write it. A connection without it is closed. With
    /// --trusted-proxy only connections of these proxies are served; else whoever can connect can say to be anybody.
    #[arg(long, env = "GREENROOM_PROXY_PROTOCOL")]
    pub(crate) proxy_protocol: bool,
}

impl ListenArgs {
    pub(crate) fn addresses(&self) -> Vec<Address> {
        if self.port.is_none() && self.host.is_none() {
            return self.listen.clone();
        }
        let (host, port) = (self.host.unwrap_or(HOST), self.port.unwrap_or(PORT));
        vec![SocketAddr::new(host, port).into()]
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        listen: ListenArgs,
    }

    fn addresses(flags: &[&str]) -> Vec<String> {
        let line = Line::parse_from([&["listen"], flags].concat());
        let addresses = line.listen.addresses();
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn port_and_host_name_one_address() {
        assert_eq!(addresses(&[]), ["127.0.0.1:5000"]);
        assert_eq!(addresses(&["-p", "8080"]), ["127.0.0.1:8080"]);
        assert_eq!(addresses(&["-o", "0.0.0.0"]), ["0.0.0.0:5000"]);
        assert_eq!(addresses(&["--host=::", "--port=80"]), ["[::]:80"]);
    }

    #[test]
    fn addresses_may_be_written_as_for_plackup() {
        let flags = ["-l", ":8080", "-l", "/run/a.sock", "-l", "unix:b.sock"];
        assert_eq!(
            addresses(&flags),
            ["0.0.0.0:8080", "unix:/run/a.sock", "unix:b.sock"]
        );
    }
}
