use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use axum_extra::extract::cookie::CookieJar;
use serde::Deserialize;

use super::form::{Press, Trouble, local, see};
use super::render::{PageResult, page, page_with};
use super::shell::Shell;
use crate::App;
use crate::auth::{self, Client, Viewer};
use crate::service::NewUser;

#[derive(Template)]
#[template(path = "pages/sign_up.html")]
struct SignUpPage {
    shell: Shell,
    trouble: Trouble,
    entered: SignUp,
}

/// The form to sign up.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SignUp {
    name: String,
    display: String,
    email: String,
    password: String,
}

pub(super) async fn show_sign_up(shell: Shell) -> PageResult {
    page(&SignUpPage {
        shell,
        trouble: Trouble::default(),
        entered: SignUp::default(),
    })
}

pub(super) async fn sign_up(
    State(app): State<App>,
    client: Client,
    cookies: CookieJar,
    Form(entered): Form<SignUp>,
) -> PageResult {
    let new = NewUser {
        name: entered.name.clone(),
        display: Some(entered.display.clone()),
        email: entered.email.clone(),
        password: entered.password.clone(),
    };
    match auth::sign_up(&app, client, new).await {
        Ok(user) => {
            let session = auth::start_session(&app, &user).await?;
            Ok((cookies.add(session.cookie), see("/")).into_response())
        }
        Err(failure) => {
            // A new user can conflict with others in the name only.
            let trouble = Trouble::of(failure)?.about("name");
            let shell = Shell::anonymous("/sign-up");
            page_with(
                trouble.status(),
                &SignUpPage {
                    shell,
                    trouble,
                    entered,
                },
            )
        }
    }
}

#[derive(Template)]
#[template(path = "pages/log_in.html")]
struct LogInPage {
    shell: Shell,
    trouble: Trouble,
    name: String,
    next: String,
}

/// The page to go to after logging in.
#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    next: String,
}

pub(super) async fn show_log_in(shell: Shell, Query(wanted): Query<Wanted>) -> PageResult {
    page(&LogInPage {
        shell,
        trouble: Trouble::default(),
        name: String::new(),
        next: local(&wanted.next).to_owned(),
    })
}

/// The form to log in.
#[derive(Deserialize)]
pub(super) struct LogIn {
    name: String,
    password: String,
    #[serde(default)]
    next: String,
}

pub(super) async fn log_in(
    State(app): State<App>,
    client: Client,
    cookies: CookieJar,
    Form(entered): Form<LogIn>,
) -> PageResult {
    match auth::log_in(&app, client, &entered.name, &entered.password).await {
        Ok(session) => Ok((cookies.add(session.cookie), see(&entered.next)).into_response()),
        Err(failure) => {
            let trouble = Trouble::of(failure)?;
            let retry = LogInPage {
                shell: Shell::anonymous("/log-in"),
                name: entered.name,
                next: local(&entered.next).to_owned(),
                trouble,
            };
            page_with(retry.trouble.status(), &retry)
        }
    }
}

pub(super) async fn log_out(
    State(app): State<App>,
    viewer: Viewer,
    cookies: CookieJar,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    let gone = auth::log_out(&app, &cookies).await?;
    Ok((cookies.add(gone), see("/")).into_response())
}
