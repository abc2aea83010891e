//! The crate's only unsafe code: system calls for which no safe crate has a function.
#![allow(
    unsafe_code,
    reason = "two system calls on a structure of numbers, argued where they are made"
)]

mod time_slice;

pub(crate) use time_slice::set_time_slice;
