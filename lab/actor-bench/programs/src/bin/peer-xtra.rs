//! The actor benchmark with xtra.

fn main() -> anyhow::Result<()> {
    actor_bench_cases::report(actor_bench_programs::xtra::run)
}
