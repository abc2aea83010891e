//! The log of the process. All tests share it, so look for words that only one of them logs.

#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../../../greenroom-psgi/tests/gateway/log.rs"]
mod of_process;

pub(crate) use of_process::keep;

/// Returns the lines with both texts.
pub(crate) fn lines(with: &str, and: &str) -> Vec<String> {
    let written = of_process::written();
    let lines = written.lines();
    let lines = lines.filter(|line| line.contains(with) && line.contains(and));
    lines.map(str::to_owned).collect()
}
