//! The layer around an application of axum.

use axum::Router;
use axum::routing::get;
use greenroom_acme::{Acme, PATH_PREFIX};
use http::Request;
use rcgen::{CertificateParams, KeyPair};
use tower::ServiceExt;

fn root() -> String {
    let params = CertificateParams::new(vec!["root.example".to_owned()]).expect("a name");
    let key = KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("it signs itself").pem()
}

#[tokio::test]
async fn a_router_has_all_but_the_challenges() {
    let storage = tempfile::tempdir().expect("a directory");
    let acme = Acme::builder(storage.path())
        .agree_to_terms_of_service()
        .roots(root())
        .certificate(["example.org"])
        .build()
        .expect("it is complete");
    let router: Router = Router::new()
        .route("/", get(async || "the application"))
        .fallback(async || "its fallback")
        .layer(acme.http01());
    let challenge = format!("{PATH_PREFIX}unknown");
    for (path, status, text) in [
        ("/", 200, "the application"),
        ("/elsewhere", 200, "its fallback"),
        (&challenge, 404, "Not Found\n"),
    ] {
        let request = Request::get(path).header("host", "example.org");
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let response = router.clone().oneshot(request).await.expect("a response");
        assert_eq!(response.status().as_u16(), status, "{path}");
        let body = axum::body::to_bytes(response.into_body(), 1024).await;
        assert_eq!(body.expect("a body"), text, "{path}");
    }
}
