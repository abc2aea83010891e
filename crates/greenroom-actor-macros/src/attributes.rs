//! Attributes of methods and arguments: the macro's own, and those that the generated code has too.

use syn::{Attribute, FnArg, ImplItemFn, Meta, Path, parse_quote};

use crate::options::MessageOptions;

const MARK: &str = "message";
const SERDE: &str = "serde";

/// The attributes of a method that generated items get too. All of them stay on the method.
pub(crate) struct Shared {
    /// `#[cfg(..)]`, on each generated item.
    pub(crate) conditions: Vec<Attribute>,
    /// `#[doc = ".."]`, on the message's struct and the reference's method.
    pub(crate) docs: Vec<Attribute>,
    /// `#[allow(..)]`, on the reference's method; `#[expect(..)]` becomes one, because the
    /// expected lint need not fire there.
    pub(crate) allowed: Vec<Attribute>,
    pub(crate) deprecated: Option<Attribute>,
}

impl Shared {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        Self {
            conditions: conditions(attributes),
            docs: docs(attributes),
            allowed: attributes.iter().filter_map(as_allow).collect(),
            deprecated: named(attributes, "deprecated").next().cloned(),
        }
    }
}

pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<Attribute> {
    named(attributes, "cfg").cloned().collect()
}

pub(crate) fn docs(attributes: &[Attribute]) -> Vec<Attribute> {
    named(attributes, "doc").cloned().collect()
}

pub(crate) fn serde(attributes: &[Attribute]) -> Vec<Attribute> {
    named(attributes, SERDE).cloned().collect()
}

/// Returns the options of the mark `#[message]`; `None` if there is no mark.
pub(crate) fn message_options(attributes: &[Attribute]) -> syn::Result<Option<MessageOptions>> {
    let mut marks = named(attributes, MARK);
    let Some(mark) = marks.next() else {
        return Ok(None);
    };
    if let Some(second) = marks.next() {
        let text = "`#[message]` stands here twice; once is allowed";
        return Err(syn::Error::new_spanned(second, text));
    }
    MessageOptions::parse(mark).map(Some)
}

pub(crate) fn mark(attributes: &[Attribute]) -> Option<&Attribute> {
    named(attributes, MARK).next()
}

/// Checks the attributes of an argument. Its docs and `#[serde(..)]` are those of the message's
/// field. All others but the level of a lint would be lost, or be a riddle there.
pub(crate) fn require_known(attributes: &[Attribute]) -> syn::Result<()> {
    let is_other = |attribute: &&Attribute| {
        let path = attribute.path();
        let known = ["doc", SERDE, "allow", "expect", "warn", "deny", "forbid"];
        !known.iter().any(|name| path.is_ident(name))
    };
    attributes.iter().find(is_other).map_or(Ok(()), |attribute| {
        let text = "only docs, the levels of lints, such as `#[allow(..)]`, and `#[serde(..)]` of \
                    remote messages are allowed on an argument of a message";
        Err(syn::Error::new_spanned(attribute, text))
    })
}

/// Removes the macro's attributes from the method. The compiler would refuse docs and
/// `#[serde(..)]` of arguments.
pub(crate) fn remove_marks(method: &mut ImplItemFn) {
    if mark(&method.attrs).is_none() {
        return;
    }
    method
        .attrs
        .retain(|attribute| !attribute.path().is_ident(MARK));
    method.attrs.insert(0, asked_for());
    for argument in &mut method.sig.inputs {
        if let FnArg::Typed(argument) = argument {
            let attributes = &mut argument.attrs;
            let is_of_field = |path: &Path| path.is_ident("doc") || path.is_ident(SERDE);
            attributes.retain(|attribute| !is_of_field(attribute.path()));
        }
    }
}

/// Allows lints that ask for what a message cannot be: with references, or without the actor. It
/// comes before the user's attributes, so that those have the last word.
fn asked_for() -> Attribute {
    parse_quote! {
        #[allow(clippy::boxed_local, clippy::needless_pass_by_value, clippy::unused_self)]
    }
}

/// Returns the docs, or `text` if there are none: a struct that the user does not see written needs
/// docs of its own.
pub(crate) fn docs_or(docs: &[Attribute], text: &str) -> Vec<Attribute> {
    if docs.is_empty() {
        vec![parse_quote!(#[doc = #text])]
    } else {
        docs.to_vec()
    }
}

fn as_allow(attribute: &Attribute) -> Option<Attribute> {
    let path = attribute.path();
    let Meta::List(list) = &attribute.meta else {
        return None;
    };
    let lints = &list.tokens;
    let is_level = path.is_ident("allow") || path.is_ident("expect");
    is_level.then(|| parse_quote!(#[allow(#lints)]))
}

fn named<'a>(attributes: &'a [Attribute], name: &str) -> impl Iterator<Item = &'a Attribute> {
    let is_named = move |attribute: &&Attribute| attribute.path().is_ident(name);
    attributes.iter().filter(is_named)
}
