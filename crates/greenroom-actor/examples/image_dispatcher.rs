//! Pictures are rendered by two at a time, on threads of their own; everybody else goes on.
//!
//! `cargo run -p greenroom-actor --example image_dispatcher`

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, AskError, Dispatcher, Mailbox, messages};
use greenroom_stage::Stage;
use serde::Deserialize;

/// The text of a configuration file.
const CONFIGURATION: &str = r#"
    [dispatchers.images]
    kind = "pool"
    threads = 2
    throughput = 1
"#;

#[derive(Deserialize)]
struct Configuration {
    dispatchers: BTreeMap<String, Dispatcher>,
}

/// Stands for a command line tool such as `convert`: a function that blocks its thread. It returns
/// when two of it have run at the same time.
#[derive(Clone)]
struct Tool {
    both: Arc<Barrier>,
    running: Arc<AtomicUsize>,
    running_max: Arc<AtomicUsize>,
}

impl Tool {
    fn new() -> Self {
        Self {
            both: Arc::new(Barrier::new(2)),
            running: Arc::default(),
            running_max: Arc::default(),
        }
    }

    fn convert(&self, file: &str) -> String {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.running_max.fetch_max(running, Ordering::SeqCst);
        self.both.wait();
        self.running.fetch_sub(1, Ordering::SeqCst);
        format!("{file}.black.png")
    }
}

struct Renderer {
    tool: Tool,
}

impl Actor for Renderer {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(16)
    }
}

#[messages]
impl Renderer {
    /// Renders a picture, however long it takes; the name of the new file.
    #[message]
    fn render(&mut self, file: String) -> String {
        self.tool.convert(&file)
    }
}

type Error = Box<dyn std::error::Error>;

/// Has four pictures rendered by two actors on this dispatcher.
async fn render_four(images: Dispatcher, tool: &Tool) -> Result<Vec<String>, Error> {
    let system = ActorSystem::builder()
        .dispatcher("images", images)
        .build()?;
    let spawn = || {
        let tool = tool.clone();
        let renderer = system.build(move || Renderer { tool: tool.clone() });
        renderer.dispatcher("images").spawn()
    };
    let renderers = [spawn()?, spawn()?];
    let requests = ["1.png", "2.png", "3.png", "4.png"]
        .into_iter()
        .zip(renderers.iter().cycle())
        .map(|(file, renderer)| render(renderer, file));
    let files = futures_util::future::try_join_all(requests).await?;
    system.shutdown(Duration::from_secs(10)).await;
    Ok(files)
}

/// Stands in for a handler of requests. It waits for room if sixteen wait already; the thread that
/// runs it is free meanwhile.
async fn render(renderer: &ActorRef<Renderer>, file: &str) -> Result<String, AskError> {
    let asked = renderer.render(file.to_owned()).ask();
    asked.timeout(Duration::from_secs(30)).await
}

fn configured() -> Result<Dispatcher, Error> {
    let mut configuration: Configuration = toml::from_str(CONFIGURATION)?;
    let images = configuration.dispatchers.remove("images");
    images.ok_or_else(|| "there is no dispatcher `images`".into())
}

/// A stage instead of a pool: it knows that its work computes or blocks, so the watchdog keeps
/// quiet, and shares the cores with other stages.
fn staged() -> Result<Dispatcher, Error> {
    let stage = Stage::builder("images").threads(1..=2).build()?;
    Ok(Dispatcher::stage(&stage, 2))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    for dispatcher in [configured()?, staged()?] {
        let tool = Tool::new();
        let files = render_four(dispatcher, &tool).await?;
        let most = tool.running_max.load(Ordering::SeqCst);
        writeln!(io::stdout(), "{files:?}, at most {most} at a time")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn renders_two_at_a_time(dispatcher: Dispatcher) {
        let tool = Tool::new();
        let files = render_four(dispatcher, &tool)
            .await
            .expect("all are rendered");
        assert_eq!(files.len(), 4);
        assert_eq!(files[3], "4.png.black.png");
        assert_eq!(tool.running_max.load(Ordering::SeqCst), 2);
    }

    // On a runtime of one thread, which a tool would block if it ran there: the test would hang.
    #[tokio::test]
    async fn renders_two_at_a_time_in_a_pool() {
        renders_two_at_a_time(configured().expect("the configuration is right")).await;
    }

    #[tokio::test]
    async fn renders_two_at_a_time_on_a_stage() {
        renders_two_at_a_time(staged().expect("a stage")).await;
    }
}
