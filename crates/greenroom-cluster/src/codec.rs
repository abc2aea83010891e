//! Messages and replies as bytes: `MessagePack`, structs as maps by the names of their fields, so
//! that a field with a default may be added.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Bytes, rmp_serde::encode::Error> {
    rmp_serde::to_vec_named(value).map(Bytes::from)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    rmp_serde::from_slice(bytes)
}
