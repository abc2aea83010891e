//! The actor benchmark with ractor.

fn main() -> anyhow::Result<()> {
    actor_bench_cases::report(actor_bench_programs::ractor::run)
}
