//! The process, by the names of Prometheus' client libraries. What the system does not tell is left
//! out.

use procfs::ProcResult;
use procfs::process::{LimitValue, Process, Stat};

use super::text::Text;

pub(super) fn add(text: &mut Text) {
    // Where /proc cannot be read, the stage has warned of it.
    let Ok(process) = Process::myself() else {
        return;
    };
    if let Ok(stat) = process.stat() {
        add_stat(&stat, text);
    }
    if let Ok(count) = process.fd_count() {
        text.begin("process_open_fds");
        // One of them is that by which they are counted.
        text.value("process_open_fds", &[], count.saturating_sub(1));
    }
    let limits = process.limits();
    if let Ok(LimitValue::Value(max)) = limits.map(|limits| limits.max_open_files.soft_limit) {
        text.begin("process_max_fds");
        text.value("process_max_fds", &[], max);
    }
}

fn add_stat(stat: &Stat, text: &mut Text) {
    text.begin("process_cpu_seconds_total");
    let ticks = stat.utime + stat.stime;
    text.value("process_cpu_seconds_total", &[], seconds(ticks));
    text.begin("process_threads");
    text.value("process_threads", &[], stat.num_threads);
    text.begin("process_virtual_memory_bytes");
    text.value("process_virtual_memory_bytes", &[], stat.vsize);
    text.begin("process_resident_memory_bytes");
    let resident = stat.rss * procfs::page_size();
    text.value("process_resident_memory_bytes", &[], resident);
    if let Ok(start) = start_time(stat) {
        text.begin("process_start_time_seconds");
        text.value("process_start_time_seconds", &[], start);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ticks and seconds of a machine's life are fewer than 2^53"
)]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}

/// Returns the time at which the process began, in seconds since 1970.
#[expect(
    clippy::cast_precision_loss,
    reason = "ticks and seconds of a machine's life are fewer than 2^53"
)]
fn start_time(stat: &Stat) -> ProcResult<f64> {
    let boot = procfs::boot_time_secs()?;
    Ok(boot as f64 + seconds(stat.starttime))
}
