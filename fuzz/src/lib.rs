//! The checks of the fuzz targets. The targets only hand over the fuzzer's bytes, so that a finding
//! can be replayed by an ordinary test.

#![forbid(unsafe_code)]

mod against_hyper;
mod chunks;
mod connection;
#[path = "../../crates/greenroom-http/tests/protocol/driver.rs"]
#[allow(dead_code, reason = "the protocol tests use more of it")]
mod driver;
mod head;

pub use against_hyper::check as against_hyper;
pub use chunks::check as chunks;
pub use connection::check as connection;
pub use head::check as head;

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn replay(target: &str, check: fn(&[u8])) {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus-seeds");
        let files = std::fs::read_dir(seeds.join(target)).expect("a folder of seeds");
        for file in files {
            let path = file.expect("a folder entry").path();
            check(&std::fs::read(path).expect("a seed"));
        }
    }

    #[test]
    fn seeds_of_head() {
        replay("head", crate::head);
    }

    #[test]
    fn seeds_of_chunks() {
        replay("chunks", crate::chunks);
    }

    #[test]
    fn seeds_of_connection() {
        replay("connection", crate::connection);
    }

    #[test]
    fn seeds_of_against_hyper() {
        replay("against_hyper", crate::against_hyper);
    }
}
