//! The TLS certificates of the process' servers.

use std::collections::BTreeMap;

use greenroom_server::CertificateStatus;

use super::text::Text;
use crate::status::Shown;

const NOT_AFTER: &str = "greenroom_tls_certificate_not_after_timestamp_seconds";

pub(super) fn add(text: &mut Text) {
    let servers = Shown::of_process();
    let certificates = servers.iter().flat_map(|server| server.certificates());
    text.begin(NOT_AFTER);
    for (host, end) in by_host(certificates) {
        text.value(NOT_AFTER, &[("host", &host)], end);
    }
}

/// Returns the ends of certificates by the names that they are for. A name whose certificate is yet
/// to come has none.
fn by_host(certificates: impl Iterator<Item = CertificateStatus>) -> BTreeMap<String, i64> {
    let mut ends = BTreeMap::new();
    for certificate in certificates {
        let Some(end) = certificate.expires_unix_seconds else {
            continue;
        };
        for host in certificate.names {
            let earliest = ends.entry(host).or_insert(end);
            *earliest = end.min(*earliest);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_end_however_many_certificates_there_are() {
        let certificate = |names: &[&str], expires_unix_seconds| CertificateStatus {
            names: names.iter().map(ToString::to_string).collect(),
            expires_unix_seconds,
            note: None,
        };
        let certificates = [
            certificate(&["a.example", "b.example"], Some(20)),
            certificate(&["a.example"], Some(10)),
            certificate(&["a.example"], Some(30)),
            certificate(&["to-come.example"], None),
        ];
        let ends = by_host(certificates.into_iter());
        let ends: Vec<_> = ends
            .iter()
            .map(|(host, end)| (host.as_str(), *end))
            .collect();
        assert_eq!(ends, [("a.example", 10), ("b.example", 20)]);
    }
}
