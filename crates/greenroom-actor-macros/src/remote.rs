//! Parsing of what makes messages remote: sent by other processes, through greenroom-cluster.

use proc_macro2::Ident;
use quote::format_ident;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, GenericParam, Generics, LitStr, Path};

use crate::errors::Errors;
use crate::message::Message;
use crate::root;

/// The longest name of an actor or of a message, as in greenroom-cluster.
const NAME_BYTES_MAX: usize = 64;

/// The options of a remote block.
#[derive(Default)]
pub(crate) struct RemoteOptions {
    /// The name of the actor for other processes.
    pub(crate) name: Option<LitStr>,
    /// The path of greenroom-cluster.
    pub(crate) root: Option<Path>,
    pub(crate) trait_name: Option<Ident>,
}

/// An actor as other processes see it.
pub(crate) struct Remote {
    /// The path of greenroom-cluster.
    pub(crate) root: Path,
    /// The kind of actor and the version of its messages, such as `mailer.v1`.
    pub(crate) name: LitStr,
    pub(crate) trait_name: Ident,
}

impl RemoteOptions {
    /// Checks that no other option stands there without the name.
    pub(crate) fn require_name(&self) -> syn::Result<()> {
        if self.name.is_some() {
            return Ok(());
        }
        let text = "this option is one of remote messages; it goes with `remote = \"name.v1\"`";
        if let Some(path) = &self.root {
            return Err(syn::Error::new_spanned(path, text));
        }
        self.trait_name
            .as_ref()
            .map_or(Ok(()), |name| Err(syn::Error::new_spanned(name, text)))
    }

    /// Returns `None` if the block is not remote.
    pub(crate) fn into_remote(self, actor_name: &Ident) -> Option<Remote> {
        let trait_name = self.trait_name;
        Some(Remote {
            name: self.name?,
            root: self.root.unwrap_or_else(root::of_cluster),
            trait_name: trait_name.unwrap_or_else(|| format_ident!("{actor_name}RemoteMessages")),
        })
    }
}

/// Parses the name in `remote = "mailer.v1"`.
pub(crate) fn actor_name(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let value = meta.value()?;
    if !value.peek(LitStr) {
        return Err(value.error("a name in quotes, such as `remote = \"mailer.v1\"`"));
    }
    let literal: LitStr = value.parse()?;
    let name = literal.value();
    // An empty part of it would be no subject of NATS.
    if name.len() <= NAME_BYTES_MAX && name.split('.').all(is_plain) {
        return Ok(literal);
    }
    let text = format!(
        "`{name}` cannot be the name of a remote actor; allowed are 1 to {NAME_BYTES_MAX} bytes of \
         `a-z`, `A-Z`, `0-9`, `-`, `_`, and single `.` between them, such as `mailer.v1`"
    );
    Err(syn::Error::new_spanned(literal, text))
}

fn is_plain(part: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !part.is_empty() && part.bytes().all(is_allowed)
}

/// Returns the name of the message of this method for other processes.
pub(crate) fn message_name(method: &Ident) -> String {
    method.unraw().to_string()
}

/// Checks what a remote actor and its messages cannot be.
pub(crate) fn require_remote(generics: &Generics, messages: &[Message], errors: &mut Errors) {
    errors.note(require_one_type(generics));
    for message in messages {
        errors.note(require_short_ascii(&message.method));
        errors.note(require_no_codec(&message.derives));
    }
}

/// Checks that no other message has what is for remote ones.
pub(crate) fn require_local(messages: &[Message], errors: &mut Errors) {
    let fields = messages.iter().flat_map(Message::fields);
    for attribute in fields.flat_map(|field| &field.serde) {
        let text = "`#[serde(..)]` is for messages that other processes send: \
                    `#[messages(remote = \"name.v1\")]`";
        errors.add(syn::Error::new_spanned(attribute, text));
    }
}

/// Refuses `#[serde(..)]` of an argument that is no field.
pub(crate) fn require_no_serde(attributes: &[Attribute]) -> syn::Result<()> {
    let is_serde = |attribute: &&Attribute| attribute.path().is_ident("serde");
    attributes
        .iter()
        .find(is_serde)
        .map_or(Ok(()), |attribute| {
            let text = "the actor passes this argument; `#[serde(..)]` is allowed on those that \
                        are fields of the message";
            Err(syn::Error::new_spanned(attribute, text))
        })
}

fn require_one_type(generics: &Generics) -> syn::Result<()> {
    // Lifetimes are refused in any block.
    let is_open = |param: &&GenericParam| !matches!(param, GenericParam::Lifetime(_));
    generics
        .params
        .iter()
        .find(is_open)
        .map_or(Ok(()), |param| {
            let text = "a remote actor is one type by one name, so it has no parameters; allowed \
                        are types: `impl Store<u64>`";
            Err(syn::Error::new_spanned(param, text))
        })
}

fn require_short_ascii(method: &Ident) -> syn::Result<()> {
    let name = message_name(method);
    if name.len() <= NAME_BYTES_MAX && is_plain(&name) {
        return Ok(());
    }
    let text = format!(
        "`{name}` cannot be the name of a remote message; allowed are 1 to {NAME_BYTES_MAX} bytes \
         of `a-z`, `A-Z`, `0-9` and `_`"
    );
    Err(syn::Error::new(method.span(), text))
}

fn require_no_codec(derives: &[Path]) -> syn::Result<()> {
    let is_codec = |path: &&Path| {
        let last = path.segments.last();
        last.is_some_and(|last| last.ident == "Serialize" || last.ident == "Deserialize")
    };
    derives.iter().find(is_codec).map_or(Ok(()), |path| {
        let text = "a remote message has serde's traits without being asked for them";
        Err(syn::Error::new_spanned(path, text))
    })
}
