//! A Perl application under `/perl` of a Rust application: routes move over one by one.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin psgi_beside_rust -- \
//!     127.0.0.1:5000 examples/psgi/hello.psgi
//! curl http://127.0.0.1:5000/perl/ http://127.0.0.1:5000/rust
//! ```

use axum::{Router, routing::get};
use greenroom::Server;
use greenroom::psgi::Gateway;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:5000".to_owned());
    let file = arguments.next().unwrap_or_else(|| "app.psgi".to_owned());
    let perl = Gateway::builder(file).workers(2).start().await?;
    let app = Router::new()
        .route("/rust", get(|| async { "Hello from Rust\n" }))
        .nest_service("/perl", perl.service()?);

    let server = Server::builder()
        .listen(address)
        .shutdown_on_signals()
        .bind()?;
    for address in server.local_addresses() {
        println!("listening on {address}");
    }
    server.serve(app).await?;
    perl.shutdown().await; // after the server: its last requests may be Perl's
    Ok(())
}
