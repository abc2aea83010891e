#![no_main]
//! See `greenroom_fuzz::head`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| greenroom_fuzz::head(data));
