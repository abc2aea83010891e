//! An example as a process, and a client that speaks plain HTTP/1.1 over a socket.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Time that a test waits for bytes; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The example of this name, not yet started.
macro_rules! example {
    ($name:literal) => {
        crate::program::Starting::new(env!(concat!("CARGO_BIN_EXE_", $name)))
    };
}
pub(crate) use example;

pub(crate) struct Starting(Command);

impl Starting {
    pub(crate) fn new(program: &str) -> Self {
        let mut command = Command::new(program);
        command.arg("127.0.0.1:0").stdout(Stdio::piped());
        Self(command)
    }

    pub(crate) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    /// Starts it, and waits until it listens.
    pub(crate) fn start(mut self) -> Example {
        let mut child = self.0.spawn().expect("the example starts");
        let stdout = child.stdout.take().expect("standard output is piped");
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        let read = stdout.read_line(&mut line);
        let address = line.trim().rsplit(' ').next().unwrap_or_default();
        let address = address.to_owned();
        let example = Example {
            child,
            address,
            _stdout: stdout,
        };
        assert!(read.is_ok() && line.starts_with("listening"), "{line}");
        example
    }
}

/// An example that runs, until it is dropped.
pub(crate) struct Example {
    child: Child,
    pub(crate) address: String,
    /// Kept open: the next version of an example says where it listens, too.
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Example {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.ask("GET", path, "", "")
    }

    /// Sends this body; header lines end with CRLF.
    pub(crate) fn send(&self, method: &str, path: &str, lines: &str, body: &str) -> Response {
        let lines = format!("content-length: {}\r\n{lines}", body.len());
        self.ask(method, path, &lines, body)
    }

    /// Sends exactly this, and reads to the end of the connection.
    pub(crate) fn ask(&self, method: &str, path: &str, lines: &str, body: &str) -> Response {
        let mut stream = self.connect();
        let host = &self.address;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        // A server may respond before it has read all: then the rest cannot be written.
        let _ = write!(stream, "{head}{lines}\r\n{body}");
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = body.to_owned();
        Response { status, body }
    }

    /// Sends a request whose response the test reads piece by piece.
    pub(crate) fn open(&self, path: &str) -> Reading {
        let mut stream = self.connect();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
        let read = String::new();
        Reading { stream, read }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the example runs");
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// As it came: the examples' responses are not chunked, but for streams.
    pub(crate) body: String,
}

pub(crate) struct Reading {
    stream: TcpStream,
    read: String,
}

impl Reading {
    /// Reads until this text has come; panics if the response ends before.
    pub(crate) fn read_until(&mut self, text: &str) {
        let mut bytes = [0; 4_096];
        while !self.read.contains(text) {
            let count = self.stream.read(&mut bytes).unwrap();
            assert!(count > 0, "no `{text}` in {}", self.read);
            self.read
                .push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }
}
