use std::cell::Cell;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Tells whoever measures the handler that runs on this thread that it was given a part of its
/// request's body, of this many bytes, before which the server has looked after other requests.
/// Does nothing if nobody asks; one addition for each part.
pub fn tell_body_part(bytes: u64) {
    TAKEN.set(TAKEN.get().wrapping_add(bytes));
}

/// Returns the number of bytes that the calling thread was told of so far, modulo 2^64: the
/// difference of two tells what was taken between them.
#[must_use]
pub fn body_bytes_told() -> u64 {
    TAKEN.get()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn each_thread_counts_its_own_parts() {
        let before = body_bytes_told();
        tell_body_part(16_384);
        tell_body_part(1);
        thread::spawn(|| tell_body_part(7))
            .join()
            .expect("no panic");
        assert_eq!(body_bytes_told() - before, 16_385);
    }
}
