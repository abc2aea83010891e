//! Create, read, update and delete as JSON, in `SQLite`, whose calls block: they run on a stage.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin crud_sqlite -- 127.0.0.1:5000 notes.db
//! curl -d '{"text":"milk"}' -H 'content-type: application/json' http://127.0.0.1:5000/notes
//! curl http://127.0.0.1:5000/notes/1
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::get, routing::post};
use greenroom::Stage;
use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)";

#[derive(Deserialize)]
struct New {
    text: String,
}

#[derive(Serialize)]
struct Note {
    id: i64,
    text: String,
}

impl Note {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (id, text) = (row.get("id")?, row.get("text")?);
        Ok(Self { id, text })
    }
}

#[derive(Clone)]
struct Notes {
    stage: Stage,
    connection: Arc<Mutex<Connection>>,
}

impl Notes {
    /// Runs `query` on the stage. Beyond what the stage can do in time the client gets 503 with
    /// `Retry-After`; of what failed in the database it gets to know nothing.
    async fn run<T, F>(&self, query: F) -> Result<T, Response>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let connection = Arc::clone(&self.connection);
        let lock_and_query =
            move || query(&connection.lock().unwrap_or_else(PoisonError::into_inner));
        let done = self.stage.run(lock_and_query).await;
        done.map_err(IntoResponse::into_response)?.map_err(|error| {
            eprintln!("the database: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        })
    }
}

async fn create(State(notes): State<Notes>, Json(new): Json<New>) -> Result<Response, Response> {
    const INSERT: &str = "INSERT INTO notes (text) VALUES (?1) RETURNING id, text";
    let insert = |db: &Connection| db.query_row(INSERT, [new.text], Note::from_row);
    Ok((StatusCode::CREATED, Json(notes.run(insert).await?)).into_response())
}

async fn read(State(notes): State<Notes>, Path(id): Path<i64>) -> Result<Json<Note>, Response> {
    const SELECT: &str = "SELECT id, text FROM notes WHERE id = ?1";
    let select = move |db: &Connection| db.query_row(SELECT, [id], Note::from_row).optional();
    let note = notes.run(select).await?.map(Json);
    note.ok_or_else(|| StatusCode::NOT_FOUND.into_response())
}

type Changed = Result<StatusCode, Response>;

async fn update(State(notes): State<Notes>, Path(id): Path<i64>, Json(new): Json<New>) -> Changed {
    const UPDATE: &str = "UPDATE notes SET text = ?2 WHERE id = ?1";
    let rows = notes
        .run(move |db| db.execute(UPDATE, (id, new.text)))
        .await?;
    Ok(found(rows))
}

async fn delete(State(notes): State<Notes>, Path(id): Path<i64>) -> Changed {
    const DELETE: &str = "DELETE FROM notes WHERE id = ?1";
    let rows = notes.run(move |db| db.execute(DELETE, [id])).await?;
    Ok(found(rows))
}

fn found(rows: usize) -> StatusCode {
    [StatusCode::NOT_FOUND, StatusCode::NO_CONTENT][rows.min(1)]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let address = arguments.get(1).map_or("127.0.0.1:5000", String::as_str);
    let connection = Connection::open(arguments.get(2).map_or("notes.db", String::as_str))?;
    connection.execute(TABLE, ())?;
    // One connection, so one thread: more would only wait for its lock.
    let stage = Stage::builder("sqlite")
        .threads(1..=1)
        .blocking_threads_max(1)
        .build()?;
    let connection = Arc::new(Mutex::new(connection));
    let notes = Notes { stage, connection };
    let app = Router::new()
        .route("/notes", post(create))
        .route("/notes/{id}", get(read).put(update).delete(delete))
        .with_state(notes);

    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(greenroom::serve(listener, app).await?)
}
