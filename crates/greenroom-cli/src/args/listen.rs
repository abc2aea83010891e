//! The flags of the addresses to listen on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use greenroom::Address;

use super::value::{self, Host, Place};

const HOST: Host = Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
const PORT: u16 = 5000;

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
pub(crate) struct ListenArgs {
    /// Address to listen on: IP:PORT, [IPV6]:PORT, localhost:PORT, :PORT for all IPv4 addresses,
    /// unix:PATH or /PATH; may be repeated
    ///
    /// Port 0 is a free port, which the log names. localhost is 127.0.0.1, and ::1 where there is
    /// IPv6. In the environment, addresses are separated by commas.
    ///
    /// Sockets that start_server (SERVER_STARTER_PORT) or systemd (LISTEN_FDS) pass on take the
    /// place of these addresses.
    #[arg(
        short,
        long,
        env = "GREENROOM_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:5000",
        value_delimiter = ',',
        value_parser = value::place
    )]
    listen: Vec<Place>,

    /// Listen on this port, of --host, instead of --listen (default with --host: 5000)
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,

    /// Listen on this IP address or on localhost, at --port, instead of --listen (default with
    /// --port: 127.0.0.1)
    ///
    /// All IPv4 addresses are 0.0.0.0, all addresses ::.
    #[arg(short = 'o', long, value_name = "IP", value_parser = value::host)]
    host: Option<Host>,

    /// Take the client's address from the PROXY protocol's header, with which every connection
    /// begins
    ///
    /// As HAProxy's send-proxy and send-proxy-v2 and nginx's proxy_protocol write it. A connection
    /// without it is closed. With --trusted-proxy only connections of these proxies are served;
    /// else every client that can connect can claim any address.
    #[arg(long, env = "GREENROOM_PROXY_PROTOCOL")]
    pub(crate) proxy_protocol: bool,

    /// True if the command line names an address.
    #[arg(skip)]
    pub(crate) is_said: bool,

    /// True if the command line, the environment or a file of sites names an address.
    #[arg(skip)]
    pub(crate) is_given: bool,
}

impl ListenArgs {
    pub(crate) fn addresses(&self) -> Vec<Address> {
        if self.port.is_none() && self.host.is_none() {
            return self.listen.iter().flat_map(addresses).collect();
        }
        let port = self.port.unwrap_or(PORT);
        addresses(&match self.host.unwrap_or(HOST) {
            Host::Ip(host) => Place::Address(SocketAddr::new(host, port).into()),
            Host::Localhost => Place::Localhost(port),
        })
    }
}

fn addresses(place: &Place) -> Vec<Address> {
    match place {
        Place::Address(address) => vec![address.clone()],
        Place::Localhost(port) => {
            let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
            // Many containers have none.
            let v6 = TcpListener::bind((v6, 0)).is_ok().then_some(v6);
            let hosts = [Some(Ipv4Addr::LOCALHOST.into()), v6];
            let hosts = hosts.into_iter().flatten();
            hosts
                .map(|host| SocketAddr::new(host, *port).into())
                .collect()
        }
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
    fn localhost_is_there_for_either_family() {
        for flags in [
            &["-l", "localhost:80"][..],
            &["-o", "localhost", "-p", "80"],
        ] {
            let addresses = addresses(flags);
            assert_eq!(addresses[0], "127.0.0.1:80");
            assert!(addresses[1..].iter().all(|address| address == "[::1]:80"));
        }
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
