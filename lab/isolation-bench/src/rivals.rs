//! Other programs of the machine, which compute all the while.

use std::process::{Child, Command, Stdio};

use bench_kit::process::pinned;

/// Of CPU time, after which the kernel ends one that this program could not end.
const CPU_SECONDS_MAX: u32 = 120;

/// Programs that do nothing, and want a core for it; they end with this value.
#[derive(Debug)]
pub(crate) struct Rivals(Vec<Child>);

impl Rivals {
    /// So many, on one core, or on those that the system chooses.
    pub(crate) fn start(count: usize, core: Option<usize>) -> anyhow::Result<Self> {
        let script = format!("ulimit -t {CPU_SECONDS_MAX}; while :; do :; done");
        let mut rivals = Self(Vec::new());
        for _ in 0..count {
            let mut command = core.map_or_else(|| Command::new("sh"), |core| pinned(core, "sh"));
            command.args(["-c", &script]).stdin(Stdio::null());
            rivals.0.push(command.spawn()?);
        }
        Ok(rivals)
    }
}

impl Drop for Rivals {
    fn drop(&mut self) {
        for rival in &mut self.0 {
            // It may have been ended by hand; there is nothing to do about a failure here.
            let _ = rival.kill();
            let _ = rival.wait();
        }
    }
}
