//! actix-web with one worker.

use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use clap::Parser;
use http_bench_apps::{ECHO, ECHO_WAIT, HELLO, Options, announce, listen};

/// actix's default of 5 s would close idle connections before they are measured.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

#[actix_web::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let listener = listen(options.port)?;
    announce(listener.local_addr()?)?;
    HttpServer::new(application)
        .workers(1)
        .tcp_nodelay(true)
        .keep_alive(KEEP_ALIVE)
        .listen(listener)?
        .run()
        .await?;
    Ok(())
}

fn application() -> App<
    impl actix_web::dev::ServiceFactory<
        actix_web::dev::ServiceRequest,
        Config = (),
        Response = actix_web::dev::ServiceResponse,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    App::new()
        .route("/hello", web::get().to(hello))
        .route("/", web::get().to(echo))
}

async fn hello() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body(HELLO)
}

async fn echo() -> HttpResponse {
    actix_web::rt::time::sleep(ECHO_WAIT).await;
    HttpResponse::Ok().content_type("text/plain").body(ECHO)
}
