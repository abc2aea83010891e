use std::net::IpAddr;

/// The owner of an address: all of one of IPv4, the /64 of one of IPv6, which one client has for
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner(pub(super) u128);

/// One more is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    /// Seconds after which there is room again, rounded up.
    pub(crate) retry_after: u64,
}

impl Owner {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Self(address.to_bits() & !u128::from(u64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(address: &str) -> Owner {
        Owner::of(address.parse().expect("an address"))
    }

    #[test]
    fn a_client_of_ipv6_is_its_64() {
        assert_eq!(owner("2001:db8:1:2::1"), owner("2001:db8:1:2:ffff::9"));
        assert_ne!(owner("2001:db8:1:2::1"), owner("2001:db8:1:3::1"));
        assert_eq!(owner("::ffff:192.0.2.1"), owner("192.0.2.1"));
        assert_ne!(owner("192.0.2.1"), owner("192.0.2.2"));
        assert_ne!(owner("::1"), owner("0.0.0.0"));
    }
}
