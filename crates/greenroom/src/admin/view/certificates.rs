use greenroom_server::CertificateStatus;

use super::format::seconds;
use super::{Column, Section, Table, Value};
use crate::Status;

/// The time before its end from which a certificate stands out.
pub(super) const SOON_SECONDS: i64 = 7 * 86_400;

pub(super) fn section(status: &Status, now: i64) -> Section {
    let rows = status.certificates.iter().map(|each| row(each, now));
    Section {
        id: "certificates",
        title: "Certificates",
        page: "certificates.md",
        about: "The TLS certificates that clients get, and when they end.",
        blocks: Table::new("All certificates", COLUMNS, rows.collect()).into_blocks(),
        empty: "The server has no certificates: it speaks no TLS.",
    }
}

fn row(certificate: &CertificateStatus, now: i64) -> Vec<Value> {
    vec![
        names(certificate).into(),
        left(certificate, now),
        certificate
            .note
            .clone()
            .unwrap_or_else(|| "–".to_owned())
            .into(),
    ]
}

pub(super) fn names(certificate: &CertificateStatus) -> String {
    if certificate.names.is_empty() {
        "(no names)".to_owned()
    } else {
        certificate.names.join(", ")
    }
}

fn left(certificate: &CertificateStatus, now: i64) -> Value {
    let Some(expires) = certificate.expires_unix_seconds else {
        return Value::from("there is none").bad_if(true);
    };
    match u64::try_from(expires - now) {
        Ok(left) => Value::from(seconds(left)).warn_if(expires - now < SOON_SECONDS),
        Err(_) => Value::from("expired").bad_if(true),
    }
}

const COLUMNS: &[Column] = &[
    Column::text("Names", "The names that it is for."),
    Column::number("Ends in", "The time until its last second."),
    Column::long("State", "What is known of its renewal."),
];
