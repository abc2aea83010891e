use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{DefaultBodyLimit, Form, Path, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use super::actions::Taken;
use super::view::View;
use super::{Admin, metrics, page};

/// The largest form of an action.
const FORM_BYTES_MAX: usize = 4096;

/// The page may load nothing but its own style sheet, script and icon. Should escaping ever fail,
/// an injected script still does not run.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
                      connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Header fields of all responses. A browser tells the origin of a form only if referrers are
/// allowed to the same one.
const FIELDS: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

pub(super) fn router(admin: &Arc<Admin>) -> Router {
    let metrics = metrics::routes().unwrap_or_else(|error| {
        tracing::warn!(%error, "the admin server shows no metrics");
        Router::new()
    });
    Router::new()
        .route("/", get(show_page))
        .route("/health", get(|| async { "alive\n" }))
        .route("/ready", get(show_readiness))
        .route("/greenroom/status", get(show_status))
        .route("/greenroom/status.txt", get(show_text))
        .route("/greenroom/history", get(show_history))
        .route("/greenroom/page.css", get(page::style))
        .route("/greenroom/page.js", get(page::script))
        .route("/greenroom/icon.svg", get(page::icon))
        .route("/greenroom/actions/{name}", post(take_action))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(Arc::clone(admin))
        .merge(metrics)
        .fallback(not_found)
        .layer(map_response(|response: Response| async {
            (FIELDS, response)
        }))
}

async fn show_page(State(admin): State<Arc<Admin>>) -> Response {
    page::render(&View::of(&admin))
}

async fn show_readiness(State(admin): State<Arc<Admin>>) -> (StatusCode, String) {
    match admin.shown.not_ready() {
        reasons if reasons.is_empty() => (StatusCode::OK, "ready\n".to_owned()),
        reasons => {
            let lines = reasons
                .iter()
                .map(|reason| format!("not ready: {reason}\n"));
            (StatusCode::SERVICE_UNAVAILABLE, lines.collect())
        }
    }
}

async fn show_status(State(admin): State<Arc<Admin>>) -> Response {
    Json(admin.shown.status()).into_response()
}

async fn show_text(State(admin): State<Arc<Admin>>) -> String {
    View::of(&admin).to_string()
}

async fn show_history(State(admin): State<Arc<Admin>>) -> Response {
    Json(admin.history.shown()).into_response()
}

async fn not_found() -> (StatusCode, &'static str) {
    let said = "Nothing is here. The page at / shows what there is.\n";
    (StatusCode::NOT_FOUND, said)
}

/// Takes an action, for a bearer of the token, or for a form of the page itself.
async fn take_action(
    State(admin): State<Arc<Admin>>,
    Path(name): Path<String>,
    fields: HeaderMap,
    form: Result<Form<Vec<(String, String)>>, FormRejection>,
) -> Response {
    let Some(actions) = &admin.actions else {
        let said = "This server takes no actions: it was started without a token.\n";
        return (StatusCode::NOT_FOUND, said).into_response();
    };
    let given = form.map(|Form(given)| given).unwrap_or_default();
    let of = |key: &str| {
        given
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, text)| &**text)
    };
    let bearer = bearer(&fields);
    let is_form = bearer.is_none();
    if is_form && !is_of_this_origin(&fields) {
        let said = "The form is of another site. A program sends the token as Authorization: \
                    Bearer TOKEN.\n";
        return (StatusCode::FORBIDDEN, said).into_response();
    }
    if !actions.admits(bearer.or_else(|| of("token"))).await {
        tracing::warn!(
            action = name,
            "an operator's action was refused: wrong token"
        );
        let said = "The token is wrong.\n".to_owned();
        let response = outcome(StatusCode::UNAUTHORIZED, said, is_form);
        return ([(WWW_AUTHENTICATE, "Bearer")], response).into_response();
    }
    // A form of the page has a value for each action that takes one.
    let value = of(&format!("value-{name}")).or_else(|| of("value"));
    let value = value.unwrap_or_default().to_owned();
    let (status, said) = match actions.take(&name, value).await {
        Taken::Done(said) => (StatusCode::OK, format!("{name}: {said}\n")),
        Taken::Failed(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{name}: {error}\n"),
        ),
        Taken::GoesOn => (
            StatusCode::ACCEPTED,
            format!("{name}: it goes on; see the log\n"),
        ),
        Taken::Busy => (
            StatusCode::CONFLICT,
            format!("{name}: it is under way already\n"),
        ),
        Taken::OtherChoice(said) => (StatusCode::BAD_REQUEST, format!("{name}: {said}\n")),
        Taken::Unknown => {
            let known: Vec<_> = actions.shown().iter().map(|action| action.name).collect();
            let known = known.join(", ");
            (
                StatusCode::NOT_FOUND,
                format!("{name}: there is no such action; there are {known}\n"),
            )
        }
    };
    outcome(status, said, is_form)
}

/// Responds with the page of an outcome to a form, and with text to a program.
fn outcome(status: StatusCode, said: String, is_form: bool) -> Response {
    let said = if is_form {
        page::outcome(&said)
    } else {
        said.into_response()
    };
    (status, said).into_response()
}

fn bearer(fields: &HeaderMap) -> Option<&str> {
    let value = fields.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns `true` if a browser says that the request comes from a page of this server.
fn is_of_this_origin(fields: &HeaderMap) -> bool {
    let text = |name: &HeaderName| fields.get(name).and_then(|value| value.to_str().ok());
    let fetch_site = HeaderName::from_static("sec-fetch-site");
    if let Some(site) = text(&fetch_site) {
        return site == "same-origin";
    }
    let origin = text(&ORIGIN).and_then(|origin| origin.split_once("://"));
    let is_form = text(&CONTENT_TYPE).is_some();
    is_form && origin.is_some_and(|(_, host)| text(&HOST) == Some(host))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn fields(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        let all = all.iter().cloned();
        all.map(|(name, value)| (name, HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_forms_of_the_page_itself_are_taken() {
        let form = (CONTENT_TYPE, "application/x-www-form-urlencoded");
        let host = (HOST, "127.0.0.1:81");
        let site = HeaderName::from_static("sec-fetch-site");
        let own = (ORIGIN, "http://127.0.0.1:81");
        let other = (ORIGIN, "http://example.org");
        for (given, expected) in [
            (vec![form.clone(), host.clone(), own.clone()], true),
            (vec![form.clone(), host.clone(), other], false),
            (vec![form.clone(), host.clone(), (ORIGIN, "null")], false),
            (vec![form.clone(), host.clone()], false),
            (
                vec![form.clone(), host.clone(), (site.clone(), "same-origin")],
                true,
            ),
            (vec![form, host, own, (site, "cross-site")], false),
        ] {
            assert_eq!(is_of_this_origin(&fields(&given)), expected, "{given:?}");
        }
    }

    #[test]
    fn a_bearer_is_told_by_its_scheme() {
        let of = |value| bearer(&fields(&[(AUTHORIZATION, value)])).map(str::to_owned);
        assert_eq!(of("bearer  secret"), Some("secret".to_owned()));
        assert_eq!(of("Basic c2VjcmV0"), None);
        assert_eq!(of("Bearer"), None);
    }
}
