//! The model's types as columns.

use jiff::Timestamp;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde_json::Value;
use url::Url;

use crate::model::{Id, Media, TaskKind, TicketPurpose};

impl ToSql for Id {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_bytes().as_slice()))
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 16]>::column_result(value).map(Self::from_bytes)
    }
}

/// A point in time, kept to the microsecond.
pub(super) struct At(pub(super) Timestamp);

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_microsecond().into())
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let timestamp = Timestamp::from_microsecond(value.as_i64()?);
        timestamp.map(Self).map_err(FromSqlError::other)
    }
}

/// Returns this moment, rounded as it is stored.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// A number that is never negative.
pub(super) struct Natural(pub(super) u64);

impl ToSql for Natural {
    /// Saturates at the largest number that a column holds: nothing is counted so far.
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::try_from(self.0).unwrap_or(i64::MAX).into())
    }
}

impl FromSql for Natural {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        let natural = u64::try_from(number);
        natural
            .map(Self)
            .map_err(|_| FromSqlError::OutOfRange(number))
    }
}

pub(super) struct Json(pub(super) Value);

impl FromSql for Json {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let parsed = serde_json::from_str(value.as_str()?);
        parsed.map(Self).map_err(FromSqlError::other)
    }
}

pub(super) struct Address(pub(super) Url);

impl FromSql for Address {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Url::parse(value.as_str()?)
            .map(Self)
            .map_err(FromSqlError::other)
    }
}

impl ToSql for Media {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

impl FromSql for Media {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        let media = Self::ALL.into_iter().find(|media| media.name() == name);
        media.ok_or(FromSqlError::InvalidType)
    }
}

impl ToSql for TicketPurpose {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

impl FromSql for TicketPurpose {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        let purpose = Self::ALL.into_iter().find(|known| known.name() == name);
        purpose.ok_or(FromSqlError::InvalidType)
    }
}

impl ToSql for TaskKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

/// A value that sorts before every identifier.
const BEFORE_ALL: [u8; 0] = [];

/// A value that sorts behind every identifier.
const BEHIND_ALL: [u8; 17] = [u8::MAX; 17];

/// Returns the bound behind which an ascending page begins.
pub(super) fn after(id: Option<&Id>) -> &[u8] {
    id.map_or(BEFORE_ALL.as_slice(), |id| id.as_bytes())
}

/// Returns the bound before which a descending page begins.
pub(super) fn before(id: Option<&Id>) -> &[u8] {
    id.map_or(BEHIND_ALL.as_slice(), |id| id.as_bytes())
}
