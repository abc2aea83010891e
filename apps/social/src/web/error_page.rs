use askama::Template;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use greenroom::Rejection;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, StatusCode, Uri};
use http_body_util::BodyExt;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::form::sentence;
use super::render;
use super::shell::Shell;
use crate::failure::Problem;
use crate::{App, Failure};

/// Longest problem body that is parsed, in bytes.
const PROBLEM_BYTES_MAX: usize = 64 * 1024;
/// Characters that would end a value of a query.
const IN_QUERY: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'"');

#[derive(Template)]
#[template(path = "pages/error.html")]
struct ErrorPage<'a> {
    shell: &'a Shell,
    status: u16,
    title: &'a str,
    detail: &'a str,
    can_retry: bool,
}

/// The fallback for addresses without a route.
pub(super) async fn nothing_here(uri: Uri) -> Failure {
    tracing::debug!(path = uri.path(), "nothing is there");
    Failure::NotFound("page")
}

/// Middleware that shows failures as pages. A visitor who must log in first is redirected. Programs
/// get the API's failures.
pub(super) async fn show_errors(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_for_programs = request.uri().path().starts_with("/api/");
    let (mut parts, body) = request.into_parts();
    let asked = Request::from_parts(parts.clone(), body);
    let response = next.run(asked).await;
    if is_for_programs || !is_failure(&response) {
        return response;
    }
    let path = page_of(&parts.method, &parts.uri);
    if response.status() == StatusCode::UNAUTHORIZED {
        return log_in_first(&path);
    }
    let shell = if spares_the_storage(response.status()) {
        Shell::anonymous(&path)
    } else {
        let found = Shell::from_request_parts(&mut parts, &app).await;
        found.unwrap_or_else(|_| Shell::anonymous(&path))
    };
    show(&shell, &parts.method, response)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

/// Returns `true` if the storage is not to be asked who views the page: it has too much to do, or
/// was waited for already.
fn spares_the_storage(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn is_failure(response: &Response) -> bool {
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let media_type = response.headers().get(CONTENT_TYPE);
    is_error
        && !media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/html"))
}

/// Returns the page to go to after logging in: a form that was sent cannot be repeated.
fn page_of(method: &Method, uri: &Uri) -> String {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if method.is_safe() {
        path.to_owned()
    } else {
        "/".to_owned()
    }
}

fn log_in_first(path: &str) -> Response {
    let next = utf8_percent_encode(path, IN_QUERY);
    Redirect::to(&format!("/log-in?next={next}")).into_response()
}

async fn show(shell: &Shell, method: &Method, response: Response) -> Result<Response, Failure> {
    let status = response.status();
    let (parts, body) = response.into_parts();
    let body = http_body_util::Limited::new(body, PROBLEM_BYTES_MAX)
        .collect()
        .await;
    let text = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let problem = serde_json::from_slice::<Problem>(&text).ok();
    let detail = problem
        .map(|problem| sentence(&problem.detail))
        .unwrap_or_default();
    let page = ErrorPage {
        shell,
        status: status.as_u16(),
        title: title(status),
        detail: if detail.is_empty() {
            words(status)
        } else {
            &detail
        },
        can_retry: can_retry(method, status),
    };
    let mut shown = render::page_with(status, &page)?;
    for name in [RETRY_AFTER, ALLOW] {
        if let Some(value) = parts.headers.get(&name) {
            shown.headers_mut().insert(name, value.clone());
        }
    }
    Ok(shown)
}

/// Returns the page of a rejection, which shows nothing of its viewer.
pub(crate) fn rejection_page(rejection: &Rejection<'_>, path: &str) -> Option<String> {
    let status = rejection.status;
    let page = ErrorPage {
        shell: &Shell::anonymous(path),
        status: status.as_u16(),
        title: title(status),
        detail: &sentence(rejection.detail),
        can_retry: rejection
            .method
            .is_some_and(|method| can_retry(method, status)),
    };
    page.render().ok()
}

fn can_retry(method: &Method, status: StatusCode) -> bool {
    let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    method.is_safe() && may_pass
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "You may not do this",
        StatusCode::NOT_FOUND => "This is not here",
        StatusCode::CONFLICT => "This contradicts what is there",
        StatusCode::PAYLOAD_TOO_LARGE => "This is too large",
        StatusCode::TOO_MANY_REQUESTS => "That was too much at once",
        StatusCode::SERVICE_UNAVAILABLE => "Not at the moment",
        status if status.is_server_error() => "Something went wrong",
        _ => "This cannot be done",
    }
}

fn words(status: StatusCode) -> &'static str {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => "This address does not take that.",
        StatusCode::PAYLOAD_TOO_LARGE => "Send less at a time.",
        status if status.is_server_error() => "It is our fault. Try again in a moment.",
        _ => "What was sent was not understood.",
    }
}
