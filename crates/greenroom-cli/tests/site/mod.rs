//! A directory with a file of sites, and the program that serves it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::program::{Running, command};

/// The time-out of a response; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The files of the sites.
pub(crate) struct Directory(TempDir);

/// The sites while they are served.
pub(crate) struct Site {
    pub(crate) server: Running,
    pub(crate) directory: Directory,
}

/// A response, taken apart.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Directory {
    /// Makes a directory with a file of sites.
    pub(crate) fn new(sites: &str) -> Self {
        let directory = Self(tempfile::tempdir().expect("a directory"));
        directory.write("greenroom.toml", sites);
        directory
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self) -> String {
        self.path("greenroom.toml").display().to_string()
    }

    /// Writes a file, in one step for whoever watches it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
        let temporary = self.path(".writing");
        fs::write(&temporary, text).expect("it can be written");
        fs::rename(temporary, path).expect("it can be moved");
    }
}

impl Site {
    pub(crate) fn serve(directory: Directory, flags: &[&str]) -> Self {
        let file = directory.file();
        let server = serve(&file, flags);
        Self { server, directory }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.ask("GET", path, "Host: localhost\r\n")
    }

    /// Sends a request with these lines of its head, `Host` among them.
    pub(crate) fn ask(&self, method: &str, path: &str, lines: &str) -> Response {
        let mut connection = self.begin(method, path, lines);
        let mut bytes = Vec::new();
        connection
            .read_to_end(&mut bytes)
            .expect("the response ends");
        Response::parse(&bytes)
    }

    /// Sends a request, and does not wait for the response.
    pub(crate) fn begin(&self, method: &str, path: &str, lines: &str) -> TcpStream {
        begin(&self.server.address, method, path, lines)
    }
}

/// Serves a file of sites on a free port.
pub(crate) fn serve(file: &str, flags: &[&str]) -> Running {
    let words = [&["serve", file, "--listen", "127.0.0.1:0"], flags].concat();
    let mut command = command(&words);
    // Perl is looked up.
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Running::start(&mut command)
}

/// Sends a request to this address, and does not wait for the response.
pub(crate) fn begin(address: &str, method: &str, path: &str, lines: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).expect("it is accepted");
    connection
        .set_read_timeout(Some(PATIENCE))
        .expect("it is not zero");
    let request = format!("{method} {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
    connection
        .write_all(request.as_bytes())
        .expect("the request is sent");
    connection
}

impl Response {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let mut response = Self {
            status: status.expect("a status"),
            head,
            body: bytes[end + 4..].to_vec(),
        };
        if response.field("transfer-encoding") == Some("chunked") {
            response.body = unchunked(&response.body);
        }
        response
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// Returns the values of all fields of a name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let fields = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let fields = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| value.trim()).collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks
            .windows(2)
            .position(|window| window == b"\r\n")
            .expect("a chunk");
        let size = String::from_utf8_lossy(&chunks[..end]);
        let size = usize::from_str_radix(&size, 16).expect("the size of a chunk");
        if size == 0 {
            return body;
        }
        body.extend(&chunks[end + 2..end + 2 + size]);
        chunks = &chunks[end + 2 + size + 2..];
    }
}
