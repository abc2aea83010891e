//! The program `greenroom` under test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The time-out of a test's condition; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the program with `arguments`, and an environment without settings for it.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(arguments).env_clear();
    command
}

/// Runs the program to its end.
pub(crate) fn output(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

/// The program while it serves. It is killed if a test forgets it or fails.
pub(crate) struct Running {
    child: Child,
    log: Receiver<String>,
    /// The first address that it listens on, as it logs it.
    pub(crate) address: String,
}

impl Running {
    /// Serves on a free port.
    pub(crate) fn serve(flags: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], flags].concat();
        Self::start(&mut command(&arguments))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut running = Self::spawn(command);
        running.address = address(&running.wait_for_log("listening"));
        running
    }

    /// Starts the program, which need not listen soon.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = lines(child.stderr.take().expect("standard error is piped"));
        Self {
            child,
            log,
            address: String::new(),
        }
    }

    /// Waits for a log line that contains `text`.
    pub(crate) fn wait_for_log(&self, text: &str) -> String {
        let mut others = Vec::new();
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => others.push(line),
                Err(error) => panic!("no log line with `{text}`: {error}: {others:#?}"),
            }
        }
    }

    /// Returns the log lines from here to the program's end.
    pub(crate) fn rest_of_log(&self) -> Vec<String> {
        self.log.iter().collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the program runs");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let connection = TcpStream::connect(&self.address).expect("the program accepts");
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection
    }

    /// Sends a request and does not wait for the response.
    pub(crate) fn request(&self, path: &str) -> TcpStream {
        let mut connection = self.connect();
        let host = &self.address;
        write!(connection, "GET {path} HTTP/1.1\r\nHost: {host}\r\n").unwrap();
        connection.write_all(b"Connection: close\r\n\r\n").unwrap();
        connection
    }

    pub(crate) fn get(&self, path: &str) -> String {
        read_to_end(self.request(path))
    }

    /// Waits for the program to end by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("the program is our child") {
                return status;
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        panic!("the program does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, which is no failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the address in the line that says where the program listens, for people or in JSON.
pub(crate) fn address(line: &str) -> String {
    let (_, rest) = line.split_once("address").expect("it is named");
    let rest = rest.trim_start_matches(['=', '"', ':']);
    let end = rest.find([' ', '"']).unwrap_or(rest.len());
    rest[..end].to_owned()
}

pub(crate) fn read_to_end(mut connection: impl Read) -> String {
    let mut response = Vec::new();
    connection
        .read_to_end(&mut response)
        .expect("the response ends");
    String::from_utf8_lossy(&response).into_owned()
}

/// Reads lines on a thread, so that waiting for one can have a limit.
fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(stderr).lines();
        lines
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    receiver
}
