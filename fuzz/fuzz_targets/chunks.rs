#![no_main]
//! See `greenroom_fuzz::chunks`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| greenroom_fuzz::chunks(data));
