//! The actor benchmark with Greenroom.

fn main() -> anyhow::Result<()> {
    actor_bench_cases::report(actor_bench_programs::greenroom::run)
}
