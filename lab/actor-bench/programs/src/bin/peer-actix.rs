//! The actor benchmark with actix.

fn main() -> anyhow::Result<()> {
    actor_bench_cases::report(actor_bench_programs::actix::run)
}
