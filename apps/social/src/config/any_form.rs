//! Settings of servers, given as an address, a list of addresses, or a table.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use url::Url;

/// Settings that addresses may stand for.
pub(super) trait OfAddresses: for<'de> Deserialize<'de> {
    /// The forms that are taken, for an error.
    const EXPECTED: &'static str;

    /// Parses an address. The error shows none, for there may be a password in it.
    fn address(text: &str) -> Result<Url, String>;

    /// Returns the settings of these servers.
    fn of_addresses(addresses: Vec<Url>) -> Self;
}

/// Reads settings from an address, a list of addresses, or a table.
pub(super) fn from_any_form<'de, T: OfAddresses, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(AnyForm(PhantomData))
}

struct AnyForm<T>(PhantomData<fn() -> T>);

impl<'de, T: OfAddresses> Visitor<'de> for AnyForm<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(T::EXPECTED)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        from_any_form(deserializer)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let address = T::address(text).map_err(E::custom)?;
        Ok(Some(T::of_addresses(vec![address])))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
        let mut addresses = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            addresses.push(T::address(&text).map_err(S::Error::custom)?);
        }
        Ok(Some(T::of_addresses(addresses)))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}
