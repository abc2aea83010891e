#![no_main]
//! See `greenroom_fuzz::connection`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| greenroom_fuzz::connection(data));
