//! Flags, and the socket that each program listens on.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::thread;

use clap::{Arg, Command, value_parser};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections that wait to be accepted, as many as Linux allows by default.
const BACKLOG: i32 = 4_096;

/// The text of `--help` for a program.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The model in a sentence
    pub about: &'static str,
    /// Its limits, each with what it counts
    pub limits: &'static [(&'static str, usize)],
}

impl Model {
    /// Reads the flags, and returns the address to listen on. Ends the program for `--help`.
    ///
    /// # Panics
    /// Never: the flag is required.
    #[must_use]
    pub fn address(self) -> SocketAddr {
        let limits = self.limits.iter();
        let limits = limits.map(|(name, most)| format!("  {most:>6} {name}\n"));
        let listen = Arg::new("listen")
            .long("listen")
            .value_name("ADDRESS")
            .help("Address and port")
            .value_parser(value_parser!(SocketAddr))
            .required(true);
        let mut matches = Command::new("model")
            .about(self.about)
            .after_help(format!("At most:\n{}", limits.collect::<String>()))
            .arg(listen)
            .get_matches();
        matches.remove_one("listen").expect("it is required")
    }
}

/// Opens a listening socket, which shares its port with others that do, and allows the process as
/// many descriptors as the system lets it have.
///
/// # Errors
/// Those of the system.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Prints where a listener listens: port 0 becomes one that is free.
///
/// # Errors
/// Those of standard output.
pub fn announce(listener: &TcpListener) -> io::Result<()> {
    writeln!(io::stdout(), "listening on {}", listener.local_addr()?)
}

/// Returns the number of cores that the process may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
