//! Classification of the driver's errors for callers of the store.

use mongodb::error::{Error, ErrorKind, WriteFailure};

use crate::store::StoreError;

/// The `MongoDB` code of a document whose unique key is taken.
const DUPLICATE_KEY: i32 = 11_000;

/// Codes of wrong commands, for which a retry is useless: `BadValue`, `FailedToParse`,
/// `TypeMismatch`, `CommandNotFound`, `InvalidOptions`, `InvalidNamespace`, `CommandNotSupported`,
/// `NotImplemented`.
const OUR_FAULT: [i32; 8] = [2, 9, 14, 59, 72, 73, 115, 238];

pub(super) fn fault(error: Error) -> StoreError {
    if is_our_fault(&error) {
        StoreError::broken(error)
    } else {
        StoreError::unavailable(error)
    }
}

/// True if a unique key is taken.
pub(super) fn is_duplicate(error: &Error) -> bool {
    match &*error.kind {
        ErrorKind::InsertMany(failure) => {
            let errors = failure.write_errors.as_deref().unwrap_or_default();
            failure.write_concern_error.is_none()
                && !errors.is_empty()
                && errors.iter().all(|error| error.code == DUPLICATE_KEY)
        }
        _ => code(error) == Some(DUPLICATE_KEY),
    }
}

fn is_our_fault(error: &Error) -> bool {
    match &*error.kind {
        ErrorKind::BsonDeserialization(_)
        | ErrorKind::BsonSerialization(_)
        | ErrorKind::Bson(_)
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::InvalidResponse { .. } => true,
        _ => code(error).is_some_and(|code| OUR_FAULT.contains(&code)),
    }
}

fn code(error: &Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(server_error) => Some(server_error.code),
        ErrorKind::Write(WriteFailure::WriteError(server_error)) => Some(server_error.code),
        _ => None,
    }
}
