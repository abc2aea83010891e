//! Actions of operators at the admin address, with a token.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{sleep, timeout};

use super::AdminToken;

/// The time for which whoever takes an action is held until its outcome; it goes on after that.
pub(super) const OUTCOME_WAIT_MAX: Duration = Duration::from_secs(30);

/// The rest after a wrong token. Rests come one after the other, so that no more tokens can be
/// tried than one in this time.
const WRONG_TOKEN_REST: Duration = Duration::from_secs(1);

/// Choices of an action that are listed.
const CHOICES_MAX: usize = 50;

type Outcome = Result<String, String>;
type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;
type Choices = Arc<dyn Fn() -> Vec<String> + Send + Sync>;
type Run = Arc<dyn Fn(String) -> Running + Send + Sync>;

/// The actions that operators can take at a server's [admin
/// address](crate::ServerBuilder::admin_token), by its page and by
/// `POST /greenroom/actions/NAME`. `drain` is always among them. Clones are the same server's.
///
/// ```no_run
/// use greenroom::{AdminToken, Server};
///
/// let server = Server::builder()
///     .listen("127.0.0.1:5000")
///     .admin("127.0.0.1:5001")
///     .admin_token(AdminToken::read("/etc/app/token")?)
///     .bind()?;
/// if let Some(actions) = server.admin_actions() {
///     actions.add("empty-cache", "Forgets what is cached", || async {
///         Ok("12 entries are forgotten".to_owned())
///     });
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AdminActions(Arc<Shared>);

struct Shared {
    token: AdminToken,
    actions: Mutex<BTreeMap<&'static str, Action>>,
    resting: AsyncMutex<()>,
}

#[derive(Clone)]
struct Action {
    label: Option<&'static str>,
    about: &'static str,
    /// The name of the value that it takes, if it takes one.
    takes: Option<&'static str>,
    /// The values that it takes now, if not any.
    choices: Option<Choices>,
    run: Run,
    /// Held while it runs: one at a time.
    running: Arc<AsyncMutex<()>>,
}

/// An action, as the page shows it.
pub(super) struct ActionShown {
    pub(super) name: &'static str,
    pub(super) label: String,
    pub(super) about: &'static str,
    pub(super) takes: Option<&'static str>,
    /// The values that it takes, if not any: at most [`CHOICES_MAX`].
    pub(super) choices: Option<Vec<String>>,
    /// Values beyond those.
    pub(super) choices_left_out: usize,
}

/// The end of an attempt to take an action.
#[derive(Debug)]
pub(super) enum Taken {
    Done(String),
    Failed(String),
    /// It has not ended within [`OUTCOME_WAIT_MAX`], and goes on.
    GoesOn,
    /// It runs already.
    Busy,
    /// It takes other values, and so none was taken.
    OtherChoice(String),
    Unknown,
}

impl AdminActions {
    pub(super) fn new(token: AdminToken, server: greenroom_server::Handle) -> Self {
        let actions = Self(Arc::new(Shared {
            token,
            actions: Mutex::default(),
            resting: AsyncMutex::default(),
        }));
        let about = "Ends the server in order: no new connections, what is under way is finished";
        actions.add("drain", about, move || {
            server.stop();
            async { Ok("the server drains, and then ends".to_owned()) }
        });
        actions
    }

    /// Adds an action, or replaces the one of this name, which is best lower case letters and
    /// hyphens. It runs on the admin server's loop, which it must not hold up, and never twice at
    /// a time; the texts that it returns are shown to the operator.
    pub fn add<F, R>(&self, name: &'static str, about: &'static str, run: F)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.insert(name, about, None, move |_| Box::pin(run()));
    }

    /// Adds an action that takes a value, such as a level; `takes` names it.
    pub fn add_with<F, R>(
        &self,
        name: &'static str,
        takes: &'static str,
        about: &'static str,
        run: F,
    ) where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.insert(name, about, Some(takes), move |value| Box::pin(run(value)));
    }

    /// Adds an action that is taken on one of several things, such as applications; `takes` names
    /// their kind, and `choices` lists them as they are at the moment. The page has a button for
    /// each. A value that is none of them is refused, and the response lists those that there are;
    /// without a value the only one is meant.
    pub fn add_for_each<C, F, R>(
        &self,
        name: &'static str,
        takes: &'static str,
        about: &'static str,
        choices: C,
        run: F,
    ) where
        C: Fn() -> Vec<String> + Send + Sync + 'static,
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.insert(name, about, Some(takes), move |value| Box::pin(run(value)));
        if let Some(action) = self.0.actions.lock().get_mut(name) {
            action.choices = Some(Arc::new(choices));
        }
    }

    /// Sets the label that the page shows for an action that was added. By default it is the name,
    /// with a capital letter, and spaces for hyphens: `Empty cache` for `empty-cache`.
    pub fn label(&self, name: &str, label: &'static str) {
        if let Some(action) = self.0.actions.lock().get_mut(name) {
            action.label = Some(label);
        }
    }

    fn insert(
        &self,
        name: &'static str,
        about: &'static str,
        takes: Option<&'static str>,
        run: impl Fn(String) -> Running + Send + Sync + 'static,
    ) {
        let action = Action {
            label: None,
            about,
            takes,
            choices: None,
            run: Arc::new(run),
            running: Arc::default(),
        };
        self.0.actions.lock().insert(name, action);
    }

    pub(super) fn shown(&self) -> Vec<ActionShown> {
        // Not locked while they list their choices.
        let actions = self.0.actions.lock().clone();
        let shown = actions.into_iter().map(|(name, action)| {
            let mut choices = action.choices.map(|choices| choices());
            let count = choices.as_ref().map_or(0, Vec::len);
            if let Some(choices) = &mut choices {
                choices.truncate(CHOICES_MAX);
            }
            ActionShown {
                name,
                label: action.label.map_or_else(|| label_of(name), str::to_owned),
                about: action.about,
                takes: action.takes,
                choices,
                choices_left_out: count.saturating_sub(CHOICES_MAX),
            }
        });
        shown.collect()
    }

    /// Returns `true` for the right token, and `false` for another after a rest.
    pub(super) async fn admits(&self, token: Option<&str>) -> bool {
        if token.is_some_and(|told| self.0.token.is(told)) {
            return true;
        }
        let _turn = self.0.resting.lock().await;
        sleep(WRONG_TOKEN_REST).await;
        false
    }

    pub(super) async fn take(&self, name: &str, value: String) -> Taken {
        let action = self.0.actions.lock().get(name).cloned();
        let Some(action) = action else {
            return Taken::Unknown;
        };
        let value = match action.chosen(value) {
            Ok(value) => value,
            Err(said) => return Taken::OtherChoice(said),
        };
        let Ok(alone) = action.running.try_lock_owned() else {
            return Taken::Busy;
        };
        let running = (action.run)(value);
        let name = name.to_owned();
        let outcome = tokio::spawn(async move {
            let outcome = running.await;
            drop(alone);
            match &outcome {
                Ok(said) => tracing::info!(action = name, said, "an operator's action is done"),
                Err(error) => tracing::error!(action = name, error, "an operator's action failed"),
            }
            outcome
        });
        match timeout(OUTCOME_WAIT_MAX, outcome).await {
            Ok(Ok(Ok(said))) => Taken::Done(said),
            Ok(Ok(Err(error))) => Taken::Failed(error),
            Ok(Err(_)) => Taken::Failed("it has panicked".to_owned()),
            Err(_) => Taken::GoesOn,
        }
    }
}

impl Action {
    /// Returns the value that is meant, or which ones there are.
    fn chosen(&self, value: String) -> Result<String, String> {
        let Some(choices) = &self.choices else {
            return Ok(value);
        };
        let mut choices = choices();
        let takes = self.takes.unwrap_or_default();
        if choices.contains(&value) {
            return Ok(value);
        }
        if value.is_empty() && choices.len() == 1 {
            return Ok(choices.remove(0));
        }
        let there_are = if choices.is_empty() {
            "there is none".to_owned()
        } else {
            let left_out = choices.len().saturating_sub(CHOICES_MAX);
            choices.truncate(CHOICES_MAX);
            let more = if left_out > 0 {
                format!(", and {left_out} more")
            } else {
                String::new()
            };
            format!("there are {}{more}", choices.join(", "))
        };
        if value.is_empty() {
            return Err(format!("the value is to be one {takes}; {there_are}"));
        }
        Err(format!("there is no {takes} `{value}`; {there_are}"))
    }
}

/// Returns the label of an action that was given none.
fn label_of(name: &str) -> String {
    let spaced = name.replace('-', " ");
    let mut letters = spaced.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl fmt::Debug for AdminActions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions = self.0.actions.lock();
        out.debug_set().entries(actions.keys()).finish()
    }
}
