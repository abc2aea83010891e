//! A program that is exchanged for its next versions.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

use crate::program::{Running, command, output, read_to_end};

/// The time-out of a condition; only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The versions of a program, the first of which is our child. All are killed at the end.
pub(crate) struct Versions {
    pub(crate) first: Running,
    /// The process that serves.
    pub(crate) pid: u32,
    all: Vec<u32>,
    pub(crate) directory: TempDir,
}

impl Versions {
    /// Serves on a free port, from a path that can lead to another program.
    pub(crate) fn serve(flags: &[&str]) -> Self {
        Self::serve_in(tempfile::tempdir().unwrap(), flags)
    }

    pub(crate) fn serve_in(directory: TempDir, flags: &[&str]) -> Self {
        Self::start(directory, &[&["--listen", "127.0.0.1:0"], flags].concat())
    }

    /// Serves as the flags say.
    pub(crate) fn start(directory: TempDir, flags: &[&str]) -> Self {
        let program = command(&[&["serve"], flags].concat());
        let path = directory.path().join("greenroom");
        symlink(program.get_program(), &path).unwrap();
        let mut called = Command::new(&path);
        called.args(program.get_args()).env_clear();
        called.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let first = Running::start(called.current_dir(directory.path()));
        let mut versions = Self::of(first);
        versions.directory = directory;
        versions
    }

    /// Takes a program that was started otherwise.
    pub(crate) fn of(first: Running) -> Self {
        Self {
            pid: first.pid(),
            first,
            all: Vec::new(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// Notes which process serves now.
    pub(crate) fn now(&mut self, pid: u32) {
        self.pid = pid;
        self.all.push(pid);
    }

    /// The path of the program.
    pub(crate) fn program(&self) -> PathBuf {
        self.directory.path().join("greenroom")
    }

    /// Puts a shell script in the place of the program.
    pub(crate) fn replace_by(&self, script: &str) {
        let new = self.directory.path().join("new");
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.program()).unwrap();
    }

    /// Puts the program back into its place.
    pub(crate) fn restore(&self) {
        let link = self.directory.path().join("link");
        symlink(env!("CARGO_BIN_EXE_greenroom"), &link).unwrap();
        fs::rename(link, self.program()).unwrap();
    }

    pub(crate) fn ask(&self) -> Output {
        ask(self.pid)
    }

    /// Exchanges the process that serves for its next version.
    #[track_caller]
    pub(crate) fn upgrade(&mut self) {
        let output = self.ask();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}{errors}");
        let mut words = printed.split(' ');
        let pid = words.nth(1).and_then(|pid| pid.parse().ok());
        let before = self.pid;
        self.now(pid.expect("the number is printed"));
        let expected = format!("process {} serves; process {before} drains\n", self.pid);
        assert_eq!(printed, expected);
    }

    /// Returns the message with which an upgrade fails, which it must.
    #[track_caller]
    pub(crate) fn fails(&self) -> String {
        let output = self.ask();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(&self.pid.to_string()), "{message}");
        message
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.first.get(path)
    }

    /// Ends the process that serves by a signal, and waits for it.
    pub(crate) fn end(&mut self) {
        let pid = Pid::from_raw(self.pid.cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.gone(self.pid);
    }

    /// Waits until a process has ended.
    pub(crate) fn gone(&mut self, pid: u32) {
        if pid == self.first.pid() {
            assert_eq!(self.first.wait().code(), Some(0));
            return;
        }
        until("it does not end", || !lives(pid));
    }
}

impl Drop for Versions {
    fn drop(&mut self) {
        for pid in &self.all {
            if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                // It may have ended already.
                let _ended = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Runs `greenroom upgrade`.
pub(crate) fn ask(pid: u32) -> Output {
    output(&["upgrade", &pid.to_string()])
}

/// Returns `true` for a process that has not ended. Nobody may have waited for it yet.
pub(crate) fn lives(pid: u32) -> bool {
    let there = Pid::from_raw(pid.cast_signed()).map(test_kill_process);
    if !matches!(there, Some(Ok(()))) {
        return false;
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let (_, state) = stat.rsplit_once(") ").unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

#[track_caller]
pub(crate) fn until(failure: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "{failure}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Returns the response of whoever listens on the Unix socket at this path.
#[track_caller]
pub(crate) fn get_at(socket: &Path) -> String {
    let mut client = UnixStream::connect(socket).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = b"GET /hello HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    read_to_end(client)
}

/// A connection that is kept.
pub(crate) struct Kept(TcpStream);

impl Kept {
    pub(crate) fn connect(address: &str) -> Self {
        let connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(connection)
    }

    /// Sends a request, and returns its whole response, which says its length; `None` if the server
    /// had ended the connection before.
    pub(crate) fn get(&mut self, path: &str) -> Option<String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
        self.0.write_all(request.as_bytes()).ok()?;
        self.response()
    }

    pub(crate) fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).unwrap();
    }

    pub(crate) fn response(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut bytes = [0; 4_096];
        loop {
            match self.0.read(&mut bytes) {
                Ok(0) if text.is_empty() => return None,
                Ok(0) => panic!("the response is cut: {text}"),
                Ok(read) => text += std::str::from_utf8(&bytes[..read]).unwrap(),
                Err(error) => panic!("{error}: {text}"),
            }
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let head = head.to_ascii_lowercase();
            let (_, length) = head.split_once("content-length: ").expect("it has one");
            let length = length.lines().next().unwrap().parse::<usize>().unwrap();
            if body.len() == length {
                return Some(text);
            }
        }
    }
}
