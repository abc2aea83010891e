//! The echo of the tutorial on Twiggy: a form, and two seconds later "You said: ...".
//!
//! Two hundred at once all get their responses after two seconds. `/` waits by a timer, as the
//! tutorial's asynchronous version does; `/blocking` sleeps with its thread, as the first version
//! does, and nobody had to rewrite it: the server finds out, and gives such requests threads of
//! their own.
//!
//! ```sh
//! cargo run --release -p greenroom-examples --bin echo
//! greenroom bench -n 200 -c 200 'http://127.0.0.1:5000/?field=hello'
//! ```

use std::time::Duration;

use axum::{Router, extract::Query, response::Html, routing::get};
use serde::Deserialize;
use tokio::net::TcpListener;

const FORM: &str = r#"<form><input name="field"><input type="submit" value="Echo"></form><hr>"#;
const DELAY: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Echo {
    field: Option<String>,
}

async fn echo(Query(echo): Query<Echo>) -> Html<String> {
    let Some(field) = echo.field else {
        return page("");
    };
    tokio::time::sleep(DELAY).await; // holds no thread
    page(&field)
}

async fn blocking(Query(echo): Query<Echo>) -> Html<String> {
    std::thread::sleep(DELAY); // holds a thread, and holds up nobody
    page(&echo.field.unwrap_or_default())
}

fn page(field: &str) -> Html<String> {
    if field.is_empty() {
        return Html(FORM.to_owned());
    }
    // What a client sent is text, not markup.
    let field = field.replace('&', "&amp;").replace('<', "&lt;");
    Html(format!("{FORM}You said: {field}<br>\n"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(echo))
        .route("/blocking", get(blocking));

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    greenroom::serve(listener, app).await
}
