//! Parsing of a method with `#[message]`.

use heck::ToUpperCamelCase;
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::{
    FnModifiers, ImplItemFn, Path, ReturnType, Safety, Signature, Type, Visibility, parse_quote,
};

use crate::argument::{Argument, Field};
use crate::attributes::{self, Shared};
use crate::errors::Errors;
use crate::options::MessageOptions;
use crate::owned;
use crate::visibility::Reach;

/// Method names that the reference or a prelude trait would take for its own.
pub(crate) const TAKEN: &[&str] = &[
    "ask",
    "clone",
    "downgrade",
    "eq",
    "forward",
    "id",
    "into",
    "is_alive",
    "kill",
    "ne",
    "path",
    "recipient",
    "send",
    "stop",
    "tell",
    "terminated",
    "to_owned",
    "try_into",
    "waiting",
];

/// A method, parsed into what is generated from it.
pub(crate) struct Message {
    pub(crate) method: Ident,
    /// The name of the struct.
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) reach: Reach,
    pub(crate) shared: Shared,
    pub(crate) derives: Vec<Path>,
    /// The arguments, in the order in which the method takes them.
    pub(crate) arguments: Vec<Argument>,
    pub(crate) kind: Kind,
    pub(crate) reply: Type,
}

/// The trait that handles the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `AsyncHandler`
    Async,
    /// `ReplyHandler`
    Reply,
    /// `Handler`
    Sync,
}

impl Message {
    /// Parses a method. Returns `None` for one without the mark.
    pub(crate) fn parse(method: &ImplItemFn, actor: &Type) -> syn::Result<Option<Self>> {
        let Some(options) = attributes::message_options(&method.attrs)? else {
            return Ok(None);
        };
        let signature = &method.sig;
        let mut errors = Errors::default();
        errors.note(require_plain(&method.modifiers, signature));
        errors.note(require_own_name(&signature.ident));
        let name = errors.note(struct_name(&options, &signature.ident));
        let reach = errors.note(Reach::of(&method.vis));
        let arguments = parse_arguments(signature, actor, &mut errors);
        let reply = errors.note(reply_of(signature, &arguments));
        errors.into_result()?;
        let parts = name.zip(reach).zip(reply);
        Ok(parts.map(|((name, reach), (kind, reply))| Self {
            method: signature.ident.clone(),
            name,
            visibility: method.vis.clone(),
            reach,
            shared: Shared::of(&method.attrs),
            derives: options.derives.unwrap_or_default(),
            arguments,
            kind,
            reply,
        }))
    }

    /// Returns the place that the compiler points to when it rejects the generated code.
    pub(crate) fn place(&self) -> Span {
        place(&self.method)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Field(field) => Some(&**field),
            Argument::Context | Argument::Reply(_) => None,
        })
    }
}

/// Returns a span with the line and column of a user's name, for code that is not the user's.
pub(crate) fn place(name: &Ident) -> Span {
    Span::call_site().located_at(name.span())
}

fn require_plain(modifiers: &FnModifiers, signature: &Signature) -> syn::Result<()> {
    let refuse = |tokens: &dyn quote::ToTokens, text: &str| {
        let tokens = tokens.to_token_stream();
        Err(syn::Error::new_spanned(tokens, text))
    };
    let kinds = "a message is a plain `fn` or an `async fn`";
    let generics = &signature.generics;
    if let Some(token) = &modifiers.defaultness {
        refuse(token, kinds)
    } else if let Some(token) = &signature.constness {
        refuse(token, kinds)
    } else if let Safety::Unsafe(token) = &signature.safety {
        refuse(token, kinds)
    } else if let Some(abi) = &signature.abi {
        refuse(abi, kinds)
    } else if !generics.params.is_empty() {
        let text = "a message is one type, so its method has no generics of its own; allowed are \
                    type and const parameters of the `impl` block";
        refuse(generics, text)
    } else if let Some(clause) = &generics.where_clause {
        refuse(clause, "bounds of a message belong on the `impl` block")
    } else {
        Ok(())
    }
}

fn require_own_name(method: &Ident) -> syn::Result<()> {
    let name = method.unraw().to_string();
    if !TAKEN.contains(&name.as_str()) {
        return Ok(());
    }
    let text = format!("`ActorRef` has a method `{name}` of its own; give this one another name");
    Err(syn::Error::new(method.span(), text))
}

fn struct_name(options: &MessageOptions, method: &Ident) -> syn::Result<Ident> {
    if let Some(name) = &options.name {
        return Ok(name.clone());
    }
    let name = method.unraw().to_string().to_upper_camel_case();
    let mut parsed: Ident = syn::parse_str(&name).map_err(|_| {
        let text = format!(
            "`{name}` cannot be the name of this message's struct; give it one with \
             `#[message(name = Name)]`"
        );
        syn::Error::new(method.span(), text)
    })?;
    parsed.set_span(method.span());
    Ok(parsed)
}

fn parse_arguments(signature: &Signature, actor: &Type, errors: &mut Errors) -> Vec<Argument> {
    if signature.receiver().is_none() {
        let text = "a message is handled by an actor; its method takes `&mut self` or `&self`";
        errors.add(syn::Error::new(signature.ident.span(), text));
    }
    let inputs = signature.inputs.iter();
    inputs
        .filter_map(|input| errors.note(Argument::parse(input, actor)).flatten())
        .collect()
}

/// Returns the kind of the handler and the type of its reply.
fn reply_of(signature: &Signature, arguments: &[Argument]) -> syn::Result<(Kind, Type)> {
    let replies = arguments.iter().filter_map(|argument| match argument {
        Argument::Reply(reply) => Some(&**reply),
        Argument::Context | Argument::Field(_) => None,
    });
    match replies.collect::<Vec<_>>().as_slice() {
        [] => {
            let kind = signature.asyncness.map_or(Kind::Sync, |_| Kind::Async);
            returned(&signature.output).map(|reply| (kind, reply))
        }
        [reply] => {
            require_nothing_else(signature)?;
            Ok((Kind::Reply, Type::clone(reply)))
        }
        [_, second, ..] => {
            let text = "a message gets one reply; one `ReplyTo<R>` is allowed";
            Err(syn::Error::new_spanned(second, text))
        }
    }
}

/// Checks that a method with a `ReplyTo<R>` returns nothing: there is no other reply, and nothing
/// waits for this method.
fn require_nothing_else(signature: &Signature) -> syn::Result<()> {
    if let ReturnType::Type(_, returned) = &signature.output {
        let text = "this method replies through its `ReplyTo<R>`, so it returns nothing";
        return Err(syn::Error::new_spanned(returned, text));
    }
    signature.asyncness.map_or(Ok(()), |token| {
        let text = "a method with a `ReplyTo<R>` is no `async fn`: it hands the `ReplyTo<R>` to \
                    what replies later, so that the actor goes on";
        Err(syn::Error::new_spanned(token, text))
    })
}

fn returned(output: &ReturnType) -> syn::Result<Type> {
    match output {
        ReturnType::Default => Ok(parse_quote!(())),
        ReturnType::Type(_, ty) => owned::require_reply(ty).map(|()| Type::clone(ty)),
    }
}
