//! CPU time of a process whose threads come and go.

use std::fs;

use anyhow::Context as _;

/// Fields of `/proc/PID/stat` after the parenthesised name, counted from 0.
const USER_TICKS_FIELD: usize = 11;
/// Ticks a second of the kernel's interface (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Returns the CPU time of a process until now, in seconds of a core. It includes threads that have
/// ended, which the kernel's finer clock of each thread does not show.
pub(crate) fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields = after_name.split(' ').skip(USER_TICKS_FIELD).take(2);
    let ticks: Vec<f64> = fields
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| path.clone())?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn time_of_threads_that_have_ended_counts() {
        let pid = std::process::id();
        let before = cpu_seconds(pid).expect("this process is there");
        let busy = std::thread::spawn(|| {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(200) {
                std::hint::spin_loop();
            }
        });
        busy.join().expect("it does not panic");
        assert!(cpu_seconds(pid).expect("it still is") > before);
    }
}
