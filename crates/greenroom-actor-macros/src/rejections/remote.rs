//! The errors of remote blocks.

use syn::parse_quote;

use super::{expand, refuses, refuses_with, tokens};

const REMOTE: &str = "remote = \"counter.v1\"";

/// Asserts that a block with these options is refused with this text, at these columns.
#[track_caller]
fn refuses_options(options: &str, columns: (usize, usize), text: &str) {
    let block = tokens("impl Counter { #[message] fn add(&mut self) {} }");
    let error = expand(&parse_quote!(x), tokens(options), block).expect_err(options);
    assert_eq!(error.to_string(), text, "{options}");
    let (start, end) = (error.span().start(), error.span().end());
    assert_eq!((start.column, end.column), columns, "{options}");
}

#[test]
fn names_of_actors() {
    let long = "a".repeat(65);
    let names = [
        "", ".", "v1.", ".v1", "a..b", "a b", "a/b", "größe", "a>", "*", &long,
    ];
    for name in names {
        let end = 11 + name.chars().count();
        refuses_options(
            &format!("remote = \"{name}\""),
            (9, end),
            &format!(
                "`{name}` cannot be the name of a remote actor; allowed are 1 to 64 bytes of \
                 `a-z`, `A-Z`, `0-9`, `-`, `_`, and single `.` between them, such as `mailer.v1`"
            ),
        );
    }
    let text = "a name in quotes, such as `remote = \"mailer.v1\"`";
    refuses_options("remote = mailer", (9, 15), text);
}

#[test]
fn names_of_actors_that_are_allowed() {
    for name in ["a", "mailer.v1", "A-Z_0.9.x", &"a".repeat(64)] {
        let options = tokens(&format!("remote = \"{name}\""));
        let block = tokens("impl Counter { #[message] fn add(&mut self) {} }");
        let expanded = expand(&parse_quote!(x), options, block).expect(name);
        assert!(expanded.to_string().contains(&format!("\"{name}\"")));
    }
}

#[test]
fn options_that_go_with_a_name() {
    let text = "this option is one of remote messages; it goes with `remote = \"name.v1\"`";
    refuses_options("cluster = shop::cluster", (10, 23), text);
    refuses_options("remote_trait_name = Counting", (20, 28), text);
    let twice = "this option is given twice; once is allowed";
    refuses_options("remote = \"a\", remote = \"b\"", (14, 20), twice);
}

#[test]
fn actors_with_parameters() {
    let text = "a remote actor is one type by one name, so it has no parameters; allowed are \
                types: `impl Store<u64>`";
    refuses_with(
        REMOTE,
        &format!(
            "\
impl<T: Send> Store<T> {{
//   ^^^^^^^ {text}
    #[message]
    fn put(&mut self, item: T) {{}}
}}
"
        ),
    );
    refuses_with(
        REMOTE,
        &format!(
            "\
impl<const N: usize> Store<N> {{
//   ^^^^^^^^^^^^^^ {text}
    #[message]
    fn size(&self) -> usize {{ N }}
}}
"
        ),
    );
}

#[test]
fn names_of_messages() {
    let long = format!("a{}", "b".repeat(64));
    let allowed = "allowed are 1 to 64 bytes of `a-z`, `A-Z`, `0-9` and `_`";
    let marks = "^".repeat(65);
    refuses_with(
        REMOTE,
        &format!(
            "\
impl Counter {{
    #[message]
    fn größe(&self) {{}}
//     ^^^^^ `größe` cannot be the name of a remote message; {allowed}
    #[message]
    fn {long}(&self) {{}}
//     {marks} `{long}` cannot be the name of a remote message; {allowed}
}}
"
        ),
    );
}

#[test]
fn derives_that_are_there_already() {
    let text = "a remote message has serde's traits without being asked for them";
    refuses_with(
        REMOTE,
        &format!(
            "\
impl Counter {{
    #[message(derive(Clone, serde::Serialize))]
//                          ^^^^^^^^^^^^^^^^ {text}
    fn add(&mut self, amount: u64) {{}}
    #[message(derive(Deserialize))]
//                   ^^^^^^^^^^^ {text}
    fn clear(&mut self) {{}}
}}
"
        ),
    );
}

#[test]
fn attributes_of_serde() {
    refuses(
        "\
impl Counter {
    #[message]
    fn add(&mut self, #[serde(default)] amount: u64) {}
//                    ^^^^^^^^^^^^^^^^^ `#[serde(..)]` is for messages that other processes \
send: `#[messages(remote = \"name.v1\")]`
}
",
    );
    let text = "the actor passes this argument; `#[serde(..)]` is allowed on those that are \
                fields of the message";
    refuses_with(
        REMOTE,
        &format!(
            "\
impl Counter {{
    #[message]
    fn first(&mut self, #[serde(skip)] reply: ReplyTo<u64>) {{}}
//                      ^^^^^^^^^^^^^^ {text}
    #[message]
    fn second(&mut self, #[serde(skip)] context: &mut Context<Self>) {{}}
//                       ^^^^^^^^^^^^^^ {text}
}}
"
        ),
    );
}
