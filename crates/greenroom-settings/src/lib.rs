#![doc = include_str!("../README.md")]

mod definition;
mod setting;
#[doc(hidden)]
pub mod table;
#[doc(hidden)]
pub mod text;

#[doc(hidden)]
pub use serde;
pub use setting::{HasSettings, Setting, SettingError, Unit};

#[cfg(test)]
mod tests;
