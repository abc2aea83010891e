//! The page of a user's credentials, and the pages that mails link to.

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use axum_extra::extract::cookie::CookieJar;
use serde::Deserialize;

use super::form::{Press, Trouble, see};
use super::render::{PageResult, page, page_with};
use super::shell::Shell;
use crate::auth::{self, Client, Viewer, check_csrf};
use crate::model::TicketPurpose;
use crate::{App, Failure, service};

#[derive(Template)]
#[template(path = "pages/account.html")]
struct AccountPage {
    shell: Shell,
    /// The address for mails; empty if none is confirmed.
    email: String,
    /// The address that waits for its confirmation; empty if there is none.
    unconfirmed: String,
    /// Confirmation of the last action, in words.
    done: &'static str,
    trouble: Trouble,
    /// The address that was entered.
    entered: String,
}

/// The query that names the last action.
#[derive(Default, Deserialize)]
pub(super) struct After {
    #[serde(default)]
    done: String,
}

impl After {
    fn words(&self) -> &'static str {
        match self.done.as_str() {
            "password" => {
                "Your password is changed, and you are logged out everywhere else. Notifications \
                 are off until you switch them on again."
            }
            "email" => {
                "A mail is on its way to the new address. Follow the link in it within an hour; \
                 until then nothing changes."
            }
            _ => "",
        }
    }
}

pub(super) async fn show(
    State(app): State<App>,
    viewer: Viewer,
    Query(after): Query<After>,
) -> PageResult {
    page(&AccountPage {
        done: after.words(),
        ..load(&app, &viewer).await?
    })
}

async fn load(app: &App, viewer: &Viewer) -> Result<AccountPage, Failure> {
    let user = app.store.user(viewer.author.id).await?;
    let user = user.ok_or(Failure::NotFound("user"))?;
    let unconfirmed = user.unconfirmed_email().unwrap_or_default().to_owned();
    Ok(AccountPage {
        shell: Shell::of(app, Some(viewer), "/settings/account").await?,
        entered: unconfirmed.clone(),
        unconfirmed,
        email: user.email,
        done: "",
        trouble: Trouble::default(),
    })
}

async fn again(app: &App, viewer: &Viewer, failure: Failure, entered: String) -> PageResult {
    let again = AccountPage {
        trouble: Trouble::of(failure)?,
        entered,
        ..load(app, viewer).await?
    };
    page_with(again.trouble.status(), &again)
}

/// The form to change the password.
#[derive(Deserialize)]
pub(super) struct NewPassword {
    csrf: String,
    old: String,
    new: String,
}

pub(super) async fn change_password(
    State(app): State<App>,
    client: Client,
    viewer: Viewer,
    cookies: CookieJar,
    Form(form): Form<NewPassword>,
) -> PageResult {
    check_csrf(&viewer, &form.csrf)?;
    let author = &viewer.author;
    let changed = async {
        auth::check_password(&app, client, author, "old", &form.old).await?;
        service::set_password(&app, author.id, "new", &form.new).await
    };
    match changed.await {
        Ok(user) => {
            let session = auth::start_session(&app, &user).await?;
            let done = see("/settings/account?done=password");
            Ok((cookies.add(session.cookie), done).into_response())
        }
        Err(failure) => again(&app, &viewer, failure, String::new()).await,
    }
}

/// The form to change the address.
#[derive(Deserialize)]
pub(super) struct NewEmail {
    csrf: String,
    email: String,
    email_password: String,
}

pub(super) async fn change_email(
    State(app): State<App>,
    client: Client,
    viewer: Viewer,
    Form(form): Form<NewEmail>,
) -> PageResult {
    check_csrf(&viewer, &form.csrf)?;
    let (author, password) = (&viewer.author, &form.email_password);
    let asked = async {
        let user = auth::check_password(&app, client, author, "email_password", password).await?;
        app.limits.mail(client)?;
        service::ask_for_email(&app, &user, &form.email).await
    };
    match asked.await {
        Ok(()) => Ok(see("/settings/account?done=email")),
        Err(failure) => again(&app, &viewer, failure, form.email).await,
    }
}

pub(super) async fn log_out_everywhere(
    State(app): State<App>,
    viewer: Viewer,
    cookies: CookieJar,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    service::end_sessions(&app, viewer.author.id).await?;
    Ok((cookies.add(auth::no_cookie(&app)), see("/log-in")).into_response())
}

/// The form to delete the account.
#[derive(Deserialize)]
pub(super) struct Goodbye {
    csrf: String,
    delete_password: String,
}

pub(super) async fn delete_account(
    State(app): State<App>,
    client: Client,
    viewer: Viewer,
    cookies: CookieJar,
    Form(form): Form<Goodbye>,
) -> PageResult {
    check_csrf(&viewer, &form.csrf)?;
    let (author, password) = (&viewer.author, &form.delete_password);
    let deleted = async {
        auth::check_password(&app, client, author, "delete_password", password).await?;
        service::delete_account(&app, author).await
    };
    match deleted.await {
        Ok(()) => {
            let gone = NoticePage::new(
                "Your account is deleted",
                "Your albums and pictures are gone. What you have said and liked goes with them, \
                 within a minute or so.",
                ("/", "To the timeline"),
            );
            Ok((cookies.add(auth::no_cookie(&app)), page(&gone)?).into_response())
        }
        Err(failure) => again(&app, &viewer, failure, String::new()).await,
    }
}

/// A page that confirms an action.
#[derive(Template)]
#[template(path = "pages/notice.html")]
struct NoticePage {
    shell: Shell,
    title: &'static str,
    text: &'static str,
    /// Address and label of the link to the next page.
    next: (&'static str, &'static str),
}

impl NoticePage {
    fn new(title: &'static str, text: &'static str, next: (&'static str, &'static str)) -> Self {
        Self {
            shell: Shell::anonymous(""),
            title,
            text,
            next,
        }
    }
}

#[derive(Template)]
#[template(path = "pages/forgot_password.html")]
struct ForgotPage {
    shell: Shell,
    trouble: Trouble,
    email: String,
}

pub(super) async fn show_forgot(shell: Shell) -> PageResult {
    page(&ForgotPage {
        shell,
        trouble: Trouble::default(),
        email: String::new(),
    })
}

/// The form of a user who has forgotten their password.
#[derive(Deserialize)]
pub(super) struct Forgot {
    email: String,
}

/// Shows the same page for a known and an unknown address.
pub(super) async fn forgot(
    State(app): State<App>,
    client: Client,
    Form(form): Form<Forgot>,
) -> PageResult {
    app.limits.mail(client)?;
    match service::ask_for_reset(&app, &form.email).await {
        Ok(()) => page(&NoticePage::new(
            "Look into your mails",
            "If somebody has signed up with this address, a mail with a link is on its way to it. \
             The link is good for an hour. An address gets such a mail every five minutes at most.",
            ("/log-in", "To the log-in"),
        )),
        Err(failure) => {
            let retry = ForgotPage {
                shell: Shell::anonymous("/forgot-password"),
                trouble: Trouble::of(failure)?,
                email: form.email,
            };
            page_with(retry.trouble.status(), &retry)
        }
    }
}

/// The query of a link in a mail.
#[derive(Deserialize)]
pub(super) struct Link {
    #[serde(default)]
    token: String,
}

#[derive(Template)]
#[template(path = "pages/reset_password.html")]
struct ResetPage {
    shell: Shell,
    trouble: Trouble,
    token: String,
    /// The user whose password it is; empty if the token is not valid.
    name: String,
}

pub(super) async fn show_reset(State(app): State<App>, Query(link): Query<Link>) -> PageResult {
    reset_page(&app, link.token, None).await
}

/// Checks the token first, so that nobody thinks of a password in vain.
async fn reset_page(app: &App, token: String, failure: Option<Failure>) -> PageResult {
    let found = service::find_ticket(app, &token, TicketPurpose::ResetPassword).await;
    let (name, trouble) = match (found, failure) {
        (Ok((_, user)), None) => (user.name, Trouble::default()),
        (Ok((_, user)), Some(failure)) => (user.name, Trouble::of(failure)?),
        (Err(failure), _) => (String::new(), Trouble::of(failure)?),
    };
    let reset = ResetPage {
        shell: Shell::anonymous("/reset-password"),
        trouble,
        token,
        name,
    };
    page_with(reset.trouble.status(), &reset)
}

/// The form to set a password with a token.
#[derive(Deserialize)]
pub(super) struct Reset {
    token: String,
    password: String,
}

pub(super) async fn reset(State(app): State<App>, Form(form): Form<Reset>) -> PageResult {
    match service::reset_password(&app, &form.token, &form.password).await {
        Ok(_) => page(&NoticePage::new(
            "Your password is changed",
            "You are logged out everywhere. Log in with the new password.",
            ("/log-in", "Log in"),
        )),
        Err(failure) => reset_page(&app, form.token, Some(failure)).await,
    }
}

#[derive(Template)]
#[template(path = "pages/confirm_email.html")]
struct ConfirmPage {
    shell: Shell,
    trouble: Trouble,
    token: String,
    name: String,
    /// The address to be confirmed; empty if the token is not valid.
    email: String,
}

/// Shows the page, and changes nothing: programs that scan mails follow links, too.
pub(super) async fn show_confirm(State(app): State<App>, Query(link): Query<Link>) -> PageResult {
    let found = service::find_ticket(&app, &link.token, TicketPurpose::ConfirmEmail).await;
    let (name, email, trouble) = match found {
        Ok((ticket, user)) => (user.name, ticket.email, Trouble::default()),
        Err(failure) => (String::new(), String::new(), Trouble::of(failure)?),
    };
    let confirm = ConfirmPage {
        shell: Shell::anonymous("/confirm-email"),
        trouble,
        token: link.token,
        name,
        email,
    };
    page_with(confirm.trouble.status(), &confirm)
}

pub(super) async fn confirm(State(app): State<App>, Form(link): Form<Link>) -> PageResult {
    match service::confirm_email(&app, &link.token).await {
        Ok(_) => page(&NoticePage::new(
            "Your address is confirmed",
            "Mails come to this address from now on. One that you had before was told of it.",
            ("/", "To the timeline"),
        )),
        Err(failure) => {
            let rejected = ConfirmPage {
                shell: Shell::anonymous("/confirm-email"),
                trouble: Trouble::of(failure)?,
                token: String::new(),
                name: String::new(),
                email: String::new(),
            };
            page_with(rejected.trouble.status(), &rejected)
        }
    }
}
