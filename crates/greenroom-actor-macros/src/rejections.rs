//! Tests of the errors, each with its place and its text.
//!
//! A source marks the expected errors in comments below the line: `//  ^^^ text`.

use std::fmt::Write as _;

use proc_macro2::TokenStream;
use syn::parse_quote;

use crate::{expand, expand_or_report};

mod remote;

/// Asserts that the `impl` block in `source` is refused with the errors that it marks.
#[track_caller]
fn refuses(source: &str) {
    refuses_with("", source);
}

/// Asserts the same of a block with these options.
#[track_caller]
fn refuses_with(options: &str, source: &str) {
    let root = parse_quote!(::greenroom_actor);
    let error = expand(&root, tokens(options), tokens(source)).expect_err(source);
    assert_eq!(with_marks(source, error), source);
}

fn tokens(source: &str) -> TokenStream {
    source.parse().expect("the source of a test is Rust")
}

/// Returns the source without its marks, and with those of `error`.
fn with_marks(source: &str, error: syn::Error) -> String {
    let errors: Vec<_> = error.into_iter().collect();
    let mut marked = String::new();
    for (index, line) in source.lines().enumerate() {
        if !line.starts_with("//") {
            let _ = writeln!(marked, "{line}");
        }
        let here = errors
            .iter()
            .filter(|error| error.span().start().line == index + 1);
        for error in here {
            let (start, end) = (error.span().start(), error.span().end());
            let (indent, length) = (start.column - 2, end.column - start.column);
            let _ = writeln!(marked, "//{:indent$}{:^<length$} {error}", "", "");
        }
    }
    marked
}

#[test]
fn other_items_than_an_inherent_impl_block() {
    let error = expand(&parse_quote!(x), tokens(""), tokens("struct Counter;"));
    assert_eq!(
        error.expect_err("a struct has no methods").to_string(),
        "`#[messages]` belongs on an `impl` block of an actor: `impl Counter { .. }`"
    );
    refuses(
        "\
impl Actor for Counter {
//   ^^^^^ `#[messages]` belongs on an `impl` block without a trait: `impl Counter { .. }`
    #[message]
    fn add(&mut self) {}
}
",
    );
    refuses(
        "\
impl [Counter] {
//   ^^^^^^^^^ an actor is a struct or an enum: `impl Counter { .. }`
    #[message]
    fn add(&mut self) {}
}
",
    );
    refuses(
        "\
impl<'a> Counter<'a> {
//   ^^ an actor is `'static`; allowed are type and const parameters
    #[message]
    fn add(&mut self) {}
}
",
    );
}

#[test]
fn a_block_without_messages() {
    refuses(
        "\
impl Counter {
//   ^^^^^^^ no method of this block is a message; put `#[message]` on those that are
    fn add(&mut self) {}
}
",
    );
}

#[test]
fn marks_in_the_wrong_place() {
    refuses(
        "\
impl Counter {
    #[message]
//  ^^^^^^^^^^ only a method can be a message
    const ZERO: u64 = 0;
    #[message]
    #[message]
//  ^^^^^^^^^^ `#[message]` stands here twice; once is allowed
    fn add(&mut self) {}
}
",
    );
}

#[test]
fn unknown_and_repeated_options() {
    refuses(
        "\
impl Counter {
    #[message(title = Add)]
//            ^^^^^ unknown option; `#[message]` takes `name = Name` and `derive(Trait, ..)`
    fn first(&mut self) {}
    #[message(name = \"Add\")]
//                   ^^^^^ a name and no string: write it without the quotes
    fn second(&mut self) {}
    #[message(name = Add, name = Add)]
//                        ^^^^ this option is given twice; once is allowed
    fn third(&mut self) {}
}
",
    );
    let unknown = "unknown option; `#[messages]` takes `trait_name = Name`, \
                   `crate = path::of::greenroom_actor`, `remote = \"name.v1\"` and with it \
                   `remote_trait_name = Name` and `cluster = path::of::greenroom_cluster`";
    let error = expand(
        &parse_quote!(x),
        tokens("name = Add"),
        tokens("impl Counter {}"),
    );
    assert_eq!(error.expect_err("it is unknown").to_string(), unknown);
}

#[test]
fn functions_that_are_no_plain_methods() {
    refuses(
        "\
impl Counter {
    #[message]
    const fn first(&mut self) {}
//  ^^^^^ a message is a plain `fn` or an `async fn`
    #[message]
    unsafe fn second(&mut self) {}
//  ^^^^^^ a message is a plain `fn` or an `async fn`
    #[message]
    extern \"C\" fn third(&mut self) {}
//  ^^^^^^^^^^ a message is a plain `fn` or an `async fn`
    #[message]
    fn fourth() {}
//     ^^^^^^ a message is handled by an actor; its method takes `&mut self` or `&self`
}
",
    );
}

#[test]
fn receivers_that_outlive_or_end_the_actor() {
    refuses(
        "\
impl Counter {
    #[message]
    fn first(self) {}
//           ^^^^ the actor outlives the message; allowed are `&mut self` and `&self`
    #[message]
    fn second(mut self) {}
//            ^^^^^^^^ the actor outlives the message; allowed are `&mut self` and `&self`
    #[message]
    fn third(self: Box<Self>) {}
//           ^^^^^^^^^^^^^^^ the actor outlives the message; allowed are `&mut self` and `&self`
    #[message]
    fn fourth(&'static self) {}
//            ^^^^^^^^^^^^^ the actor outlives the message; allowed are `&mut self` and `&self`
}
",
    );
}

#[test]
fn generics_of_a_method() {
    let text = "a message is one type, so its method has no generics of its own; allowed are type \
                and const parameters of the `impl` block";
    refuses(&format!(
        "\
impl Counter {{
    #[message]
    fn first<T>(&mut self, value: T) {{}}
//          ^^^ {text}
    #[message]
    fn second<const N: usize>(&mut self) {{}}
//           ^^^^^^^^^^^^^^^^ {text}
    #[message]
    fn third(&mut self) where Self: Sized {{}}
//                      ^^^^^^^^^^^^^^^^^ bounds of a message belong on the `impl` block
}}
"
    ));
}

#[test]
fn arguments_that_borrow() {
    let text = "a message waits in the mailbox, so it cannot borrow; allowed are owned types \
                (`String` for `&str`), what is `'static`, and `&mut Context<Self>`";
    refuses(&format!(
        "\
impl Counter {{
    #[message]
    fn first(&mut self, name: &str) {{}}
//                            ^^^^ {text}
    #[message]
    fn second(&mut self, names: Vec<&mut String>, name: Cow<'_, str>) {{}}
//                                  ^^^^^^^^^^^ {text}
//                                                          ^^ {text}
    #[message]
    fn third(&mut self, work: Box<dyn Work<'_>>) {{}}
//                                         ^^ {text}
    #[message]
    async fn fourth(&mut self, context: &Context<Self>) {{}}
//                                      ^^^^^^^^^^^^^^ {text}
}}
"
    ));
}

#[test]
fn arguments_without_a_name_or_a_named_type() {
    let named = "an argument of a message names a field, so it is a name (`amount` or `mut \
                 amount`); take it apart within the method";
    let unnamed = "a field of a message needs a named type; allowed are types such as `Box<dyn \
                   Trait>`, and type parameters of the `impl` block";
    refuses(&format!(
        "\
impl Counter {{
    #[message]
    fn first(&mut self, (a, b): (u64, u64), _: u64, ref c: u64) {{}}
//                      ^^^^^^ {named}
//                                          ^ {named}
//                                                  ^^^^^ {named}
    #[message]
    fn second(&mut self, work: Vec<impl Work>) {{}}
//                                 ^^^^^^^^^ {unnamed}
}}
"
    ));
}

#[test]
fn attributes_of_arguments() {
    refuses(
        "\
impl Counter {
    #[message]
    fn add(&mut self, #[cfg(unix)] amount: u64) {}
//                    ^^^^^^^^^^^^ only docs, the levels of lints, such as `#[allow(..)]`, and \
`#[serde(..)]` of remote messages are allowed on an argument of a message
}
",
    );
}

#[test]
fn replies_that_borrow_or_have_no_name() {
    let borrows = "a reply leaves the actor, so it cannot borrow; allowed are owned types \
                   (`String` for `&str`) and what is `'static`";
    refuses(&format!(
        "\
impl Counter {{
    #[message]
    fn first(&self) -> &str {{ &self.name }}
//                     ^^^^ {borrows}
    #[message]
    fn second(&self, reply: ReplyTo<&str>) {{}}
//                                  ^^^^ {borrows}
    #[message]
    fn third(&self) -> impl Future<Output = u64> {{}}
//                     ^^^^^^^^^^^^^^^^^^^^^^^^^ a reply needs a named type; allowed are `async \
fn` for `-> impl Future`, and types such as `Box<dyn Trait + Send>`
}}
"
    ));
}

#[test]
fn more_than_one_way_to_reply() {
    refuses(
        "\
impl Counter {
    #[message]
    fn first(&mut self, reply: ReplyTo<u64>) -> u64 { 1 }
//                                              ^^^ this method replies through its \
`ReplyTo<R>`, so it returns nothing
    #[message]
    fn second(&mut self, one: ReplyTo<u64>, two: ReplyTo<u8>) {}
//                                                       ^^ a message gets one reply; one \
`ReplyTo<R>` is allowed
    #[message]
    async fn third(&mut self, reply: ReplyTo<u64>) {}
//  ^^^^^ a method with a `ReplyTo<R>` is no `async fn`: it hands the `ReplyTo<R>` to what replies \
later, so that the actor goes on
}
",
    );
}

#[test]
fn names_that_are_taken_or_make_none() {
    refuses(
        "\
impl Counter {
    #[message]
    fn stop(&mut self) {}
//     ^^^^ `ActorRef` has a method `stop` of its own; give this one another name
    #[message]
    fn self_(&mut self) {}
//     ^^^^^ `Self` cannot be the name of this message's struct; give it one with \
`#[message(name = Name)]`
    #[message(name = Two)]
    fn _2(&mut self, amount: &u8) {}
//                           ^^^ a message waits in the mailbox, so it cannot borrow; allowed are \
owned types (`String` for `&str`), what is `'static`, and `&mut Context<Self>`
}
",
    );
}

#[test]
fn visibilities_of_a_path() {
    refuses(
        "\
impl Counter {
    #[message]
    pub(in crate::shop) fn add(&mut self) {}
//  ^^^^^^^^^^^^^^^^^^^ a message is `pub`, `pub(crate)`, `pub(super)` or private
}
",
    );
}

#[test]
fn the_methods_stay_beside_an_error() {
    let block = "impl Counter { #[message] fn add(self, #[doc = \"x\"] #[serde(skip)] amount: u64) {} \
         fn help() {} }";
    let root = parse_quote!(::greenroom_actor);
    let output = expand_or_report(&root, tokens(""), tokens(block)).to_string();
    let methods = syn::parse_str::<syn::File>(&output)
        .expect("the output is Rust")
        .items;
    assert!(
        matches!(
            methods.as_slice(),
            [syn::Item::Macro(_), syn::Item::Impl(_)]
        ),
        "{output}"
    );
    assert!(
        output.contains("fn add") && output.contains("fn help"),
        "{output}"
    );
    assert!(
        !["[message]", "doc", "serde"]
            .iter()
            .any(|text| output.contains(text)),
        "{output}"
    );
}
