use std::fmt;

/// The things that a server was given for its status to show.
#[derive(Default)]
pub(crate) struct Sources {
    #[cfg(feature = "bus")]
    pub(crate) buses: Vec<greenroom_bus::Bus>,
    #[cfg(feature = "cluster")]
    pub(crate) clusters: Vec<greenroom_cluster::Cluster>,
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    pub(crate) tls: Option<greenroom_server::Tls>,
    /// Certificates that come from elsewhere.
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    pub(crate) obtained: Option<Obtained>,
}

#[cfg(any(feature = "tls", feature = "tls-ring"))]
pub(crate) type Obtained = Box<dyn Fn() -> Vec<greenroom_server::CertificateStatus> + Send + Sync>;

#[cfg(any(feature = "tls", feature = "tls-ring"))]
impl Sources {
    pub(crate) fn certificates(&self) -> Vec<greenroom_server::CertificateStatus> {
        let own = self
            .tls
            .iter()
            .flat_map(greenroom_server::Tls::certificates);
        own.chain(self.obtained.iter().flat_map(|status| status()))
            .collect()
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sources").finish_non_exhaustive()
    }
}
