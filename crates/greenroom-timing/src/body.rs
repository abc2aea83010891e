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

/// Calls the closure, and returns what it returns and the number of bytes that the calling thread
/// was told of meanwhile. A call around this one is not told of them, nor if the closure panics:
/// they are of this handler.
pub fn body_bytes_during<R>(run: impl FnOnce() -> R) -> (R, u64) {
    let _restored = Restored(TAKEN.replace(0));
    let result = run();
    (result, TAKEN.get())
}

/// Restores the bytes of the call around.
struct Restored(u64);

impl Drop for Restored {
    fn drop(&mut self) {
        TAKEN.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::thread;

    use super::*;

    #[test]
    fn each_thread_counts_its_own_parts() {
        let tell = || {
            tell_body_part(16_384);
            tell_body_part(1);
            thread::spawn(|| tell_body_part(7))
                .join()
                .expect("no panic");
        };
        assert_eq!(body_bytes_during(tell), ((), 16_385));
    }

    #[test]
    fn what_an_inner_call_is_told_of_is_not_the_outer_ones() {
        let tell = || {
            tell_body_part(5);
            assert_eq!(body_bytes_during(|| tell_body_part(16_384)), ((), 16_384));
            let panicked = catch_unwind(|| {
                body_bytes_during(|| {
                    tell_body_part(3);
                    panic!("with a part");
                })
            });
            assert!(panicked.is_err());
            tell_body_part(2);
        };
        assert_eq!(body_bytes_during(tell), ((), 7));
    }
}
