//! The service manager's store of descriptors: who waits at a socket while there is no process.

use std::fs::File;
use std::io::{ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use rustix::cmsg_space;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::program::{Running, address, read_to_end};
use crate::versions::{PATIENCE, Versions};

/// Descriptors of a message; no server of these tests has so many sockets.
const DESCRIPTORS_MAX: usize = 16;

/// A service manager with a store, which it passes on as systemd does.
struct Manager {
    socket: UnixDatagram,
    directory: TempDir,
    store: Vec<(String, OwnedFd)>,
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let program = directory.path().join("greenroom");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_greenroom"), program).unwrap();
        Self {
            socket,
            directory,
            store: Vec::new(),
        }
    }

    /// Returns the server as the manager calls it, with what is in the store: a shell says for
    /// which process it is. Only standard input and output can be passed without a race.
    fn calls(&self, flags: &[&str]) -> Command {
        let names: Vec<&str> = self.store.iter().map(|(name, _)| name.as_str()).collect();
        let fds = ["", "LISTEN_FDS=1", "LISTEN_FDS=2"][self.store.len()];
        let ours = if fds.is_empty() { "" } else { "LISTEN_PID=$$" };
        let script = format!(
            "exec 3<&0 4>&1 </dev/null >/dev/null; export SYSTEMD_EXEC_PID=$$ {fds} {ours}; \
             exec \"$0\" serve \"$@\""
        );
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]);
        shell.arg(self.directory.path().join("greenroom"));
        shell.args(flags).env_clear().env("FDSTORE", "64");
        shell.env("NOTIFY_SOCKET", self.directory.path().join("notify"));
        if !names.is_empty() {
            shell.env("LISTEN_FDNAMES", names.join(":"));
        }
        let mut sockets = self.store.iter().map(|(_, socket)| {
            let socket = socket.try_clone().unwrap();
            Stdio::from(socket)
        });
        shell.stdin(sockets.next().unwrap_or_else(Stdio::null));
        shell.stdout(sockets.next().unwrap_or_else(Stdio::null));
        shell
    }

    /// Starts the server, and waits until it serves.
    fn starts(&mut self, flags: &[&str]) -> Running {
        let mut server = Running::spawn(&mut self.calls(flags));
        self.hears("READY=1");
        server.address = address(&server.wait_for_log("listening"));
        server
    }

    /// Keeps and gives up what the messages say, up to the one with this line.
    fn hears(&mut self, line: &str) {
        loop {
            let (message, sockets) = self.receive();
            let said = |what: &str| message.lines().any(|line| line == what);
            let mut lines = message.lines();
            let name = lines.find_map(|line| line.strip_prefix("FDNAME="));
            if said("FDSTOREREMOVE=1") {
                self.store.retain(|(kept, _)| Some(kept.as_str()) != name);
            }
            if said("FDSTORE=1") {
                for socket in sockets {
                    self.keep(name.unwrap(), socket);
                }
            }
            if said(line) {
                return;
            }
        }
    }

    /// Keeps a descriptor, unless it has another one of the same socket: so `sd_notify(3)`.
    fn keep(&mut self, name: &str, socket: OwnedFd) {
        assert!(name.len() <= 255 && !name.contains(':'), "{name}");
        let new = inode(&socket);
        if self.store.iter().all(|(_, kept)| inode(kept) != new) {
            self.store.push((name.to_owned(), socket));
        }
    }

    fn receive(&self) -> (String, Vec<OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 4_096];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.socket, &mut parts, &mut control, flags);
        let length = received.expect("a message comes").bytes;
        let sockets = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        });
        let sockets = sockets.flatten().collect();
        (
            String::from_utf8(bytes[..length].to_vec()).unwrap(),
            sockets,
        )
    }

    fn names(&self) -> Vec<&str> {
        self.store.iter().map(|(name, _)| name.as_str()).collect()
    }
}

fn inode(socket: &OwnedFd) -> u64 {
    let file = File::from(socket.try_clone().unwrap());
    file.metadata().unwrap().ino()
}

fn kill(server: &mut Running) {
    server.signal(Signal::KILL);
    assert!(!server.wait().success());
}

fn are_served(waiting: Vec<TcpStream>) {
    for client in waiting {
        let response = read_to_end(client);
        assert!(response.ends_with("Hello, world!\n"), "{response}");
    }
}

fn is_refused(address: &str) -> bool {
    let connected = TcpStream::connect(address);
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

const ANY: &str = "127.0.0.1:0";

#[test]
fn who_waits_while_there_is_no_process_is_served_by_the_next_one() {
    let mut manager = Manager::new();
    let flags = ["-l", ANY, "--loops", "2"];
    let mut server = manager.starts(&flags);
    assert_eq!(manager.names().len(), 2);
    for ending in [Signal::KILL, Signal::TERM, Signal::KILL] {
        server.signal(ending);
        server.wait();
        // Enough for each of the two sockets to have some.
        let waiting = (0..32).map(|_| server.request("/hello")).collect();
        let next = manager.starts(&flags);
        assert_eq!(next.address, server.address, "{ending:?}");
        are_served(waiting);
        assert_eq!(manager.names().len(), 2);
        server = next;
    }
}

#[test]
fn upgrades_leave_the_store_as_it_is() {
    let mut manager = Manager::new();
    let flags = ["-l", ANY, "--loops", "2"];
    let first = manager.starts(&flags);
    let before: Vec<u64> = manager.store.iter().map(|(_, kept)| inode(kept)).collect();
    let mut versions = Versions::of(first);
    for _ in 0..2 {
        let ended = versions.pid;
        versions.upgrade();
        manager.hears(&format!("MAINPID={}", versions.pid));
        versions.gone(ended);
        // It stores them when the one before has ended.
        manager.hears("FDSTORE=1");
        let now: Vec<u64> = manager.store.iter().map(|(_, kept)| inode(kept)).collect();
        assert_eq!(now, before);
    }
    let pid = Pid::from_raw(versions.pid.cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    versions.gone(versions.pid);
    let waiting = (0..32).map(|_| versions.first.request("/hello")).collect();
    let next = manager.starts(&flags);
    assert_eq!(next.address, versions.first.address);
    are_served(waiting);
}

#[test]
fn an_upgrade_removes_what_the_next_version_does_not_name() {
    let mut manager = Manager::new();
    let flags = ["-l", ANY, "-l", "127.0.0.2:0", "--loops", "1"];
    let first = manager.starts(&flags);
    assert_eq!(manager.names().len(), 2);
    let mut versions = Versions::of(first);
    let own = std::mem::replace(&mut manager.directory, tempfile::tempdir().unwrap());
    versions.directory = own;
    let program = env!("CARGO_BIN_EXE_greenroom");
    versions.replace_by(&format!("exec {program} serve -l {ANY} --loops 1"));
    versions.upgrade();
    manager.hears("FDSTOREREMOVE=1");
    assert_eq!(manager.names().len(), 1);
    assert!(manager.names()[0].ends_with("127.0.0.1+0"));
    manager.hears(&format!("MAINPID={}", versions.pid));
    assert!(versions.get("/hello").ends_with("Hello, world!\n"));
}

#[test]
fn what_is_not_named_any_more_is_removed() {
    let mut manager = Manager::new();
    let mut server = manager.starts(&["-l", "127.0.0.2:0", "-l", ANY, "--loops", "1"]);
    assert_eq!(manager.names().len(), 2);
    kill(&mut server);
    assert!(!is_refused(&server.address));
    let next = manager.starts(&["-l", ANY, "--loops", "1"]);
    assert_eq!(manager.names().len(), 1);
    assert!(is_refused(&server.address));
    assert!(next.get("/hello").ends_with("Hello, world!\n"));
}

#[test]
fn a_stored_socket_gives_its_port_to_an_address_that_is_named_now() {
    let mut manager = Manager::new();
    let mut server = manager.starts(&["-l", ANY, "--loops", "1"]);
    kill(&mut server);
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let everywhere = format!("0.0.0.0:{port}");
    let _next = manager.starts(&["-l", &everywhere, "--loops", "1"]);
    assert_eq!(manager.names().len(), 1);
    assert!(server.get("/hello").ends_with("Hello, world!\n"));
}

#[test]
fn without_an_offer_nothing_is_stored() {
    let mut manager = Manager::new();
    let mut called = manager.calls(&["-l", ANY]);
    let server = Running::start(called.env_remove("FDSTORE"));
    manager.hears("READY=1");
    assert!(manager.store.is_empty());
    drop(server);
    let output = manager.calls(&["-l", ANY]).env("FDSTORE", "many").output();
    let output = output.unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("FDSTORE=many"), "{message}");
}
