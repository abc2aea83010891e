use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// An authority, and the certificates that it has signed: a server at `localhost`, and a client.
/// All as PEM.
#[derive(Debug)]
pub struct Certificates {
    /// The authority's certificate.
    pub authority: String,
    /// The certificate of a server at `localhost`.
    pub server: String,
    /// The server's private key.
    pub server_key: String,
    /// The certificate of a client.
    pub client: String,
    /// The client's private key.
    pub client_key: String,
}

impl Certificates {
    /// Makes an authority and its certificates.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        // A name that differs from the others': a certificate with its issuer's name counts as
        // self-signed.
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("it signs itself").pem();
        let issuer = Issuer::new(params, key);
        let signed = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(names).expect("names of hosts");
            let certificate = params.signed_by(&key, &issuer).expect("it is signed");
            (certificate.pem(), key.serialize_pem())
        };
        let (server, server_key) = signed(&["localhost"]);
        let (client, client_key) = signed(&["client"]);
        Self {
            authority,
            server,
            server_key,
            client,
            client_key,
        }
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}
