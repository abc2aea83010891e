//! The actor benchmark with kameo.

fn main() -> anyhow::Result<()> {
    actor_bench_cases::report(actor_bench_programs::kameo::run)
}
