#![no_main]
//! See `greenroom_fuzz::against_hyper`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| greenroom_fuzz::against_hyper(data));
