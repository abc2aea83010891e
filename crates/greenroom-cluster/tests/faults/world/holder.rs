use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than a process takes to begin.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A process that holds namespaces of network and mounts by sleeping in them.
pub(super) struct Holder(Child);

impl Holder {
    pub(super) fn start() -> Self {
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "--mount"])
            .args(["sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn();
        let holder = Self(process.expect("setpriv of util-linux"));
        // Before that the namespaces are still ours, which nothing must be done to.
        let name = format!("/proc/{}/comm", holder.pid());
        let deadline = Instant::now() + DEADLINE;
        while fs::read_to_string(&name).expect("it runs") != "sleep\n" {
            assert!(Instant::now() < deadline, "no namespace was made");
            thread::sleep(POLL_INTERVAL);
        }
        holder
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns the words that put a command into the namespaces.
    pub(super) fn enter(&self) -> Vec<String> {
        let pid = self.pid().to_string();
        ["nsenter", "--target", &pid, "--net", "--mount", "--"]
            .map(str::to_owned)
            .into()
    }

    /// Runs commands of `ip`, one a line.
    pub(super) fn ip(&self, commands: &str) {
        let words = self.enter();
        let mut process = Command::new(&words[0])
            .args(&words[1..])
            .args(["ip", "-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("nsenter of util-linux");
        let mut input = process.stdin.take().expect("it is piped");
        input.write_all(commands.as_bytes()).expect("it reads");
        drop(input);
        let status = process.wait().expect("it is our child");
        assert!(status.success(), "{commands}: {status}");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends in no other way.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
