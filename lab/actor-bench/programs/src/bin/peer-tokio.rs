//! The actor benchmark with a bare tokio task behind a bounded mpsc channel.

fn main() -> anyhow::Result<()> {
    actor_bench_cases::report(actor_bench_programs::tokio::run)
}
