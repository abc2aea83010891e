//! Parsing of a method's arguments beside `self`: fields of its message, the context, and
//! `ReplyTo<R>`.

use proc_macro2::Ident;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, FnArg, GenericArgument, Pat, PatType, Path, PathArguments, Receiver, ReceiverKind,
    Type,
};

use crate::self_type::WriteOut;
use crate::{attributes, owned, remote};

/// An argument of a method, by the value that is passed for it.
pub(crate) enum Argument {
    /// `&mut Context<Self>`
    Context,
    Field(Box<Field>),
    /// `ReplyTo<R>`, with the `R`.
    Reply(Box<Type>),
}

/// A field of a message.
pub(crate) struct Field {
    pub(crate) name: Ident,
    /// The type without `Self`, which would be the message.
    pub(crate) ty: Type,
    pub(crate) docs: Vec<Attribute>,
    /// `#[serde(..)]`, in a remote block.
    pub(crate) serde: Vec<Attribute>,
}

impl Argument {
    /// Parses an argument. Returns `None` for `self`.
    pub(crate) fn parse(argument: &FnArg, actor: &Type) -> syn::Result<Option<Self>> {
        match argument {
            FnArg::Receiver(receiver) => require_borrowed(receiver).map(|()| None),
            FnArg::Typed(argument) => Self::parse_typed(argument, actor).map(Some),
        }
    }

    fn parse_typed(argument: &PatType, actor: &Type) -> syn::Result<Self> {
        if is_context(&argument.ty) {
            remote::require_no_serde(&argument.attrs)?;
            return Ok(Self::Context);
        }
        if let Some(reply) = replied_by(&argument.ty) {
            remote::require_no_serde(&argument.attrs)?;
            owned::require_reply(reply)?;
            return Ok(Self::Reply(Box::new(reply.clone())));
        }
        attributes::require_known(&argument.attrs)?;
        let name = name(&argument.pat)?.clone();
        owned::require_argument(&argument.ty)?;
        let mut ty = Type::clone(&argument.ty);
        WriteOut { actor }.visit_type_mut(&mut ty);
        Ok(Self::Field(Box::new(Field {
            name,
            ty,
            docs: attributes::docs(&argument.attrs),
            serde: attributes::serde(&argument.attrs),
        })))
    }
}

fn require_borrowed(receiver: &Receiver) -> syn::Result<()> {
    if let ReceiverKind::Reference(_, None, _) = receiver.kind {
        return Ok(());
    }
    let text = "the actor outlives the message; allowed are `&mut self` and `&self`";
    Err(syn::Error::new_spanned(receiver, text))
}

fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = bare(ty) else {
        return false;
    };
    let path = path_of(&reference.elem).filter(|_| reference.mutability.is_some());
    path.is_some_and(|path| ends_with(path, "Context"))
}

/// Returns the `R` of `ReplyTo<R>`.
fn replied_by(ty: &Type) -> Option<&Type> {
    let path = path_of(ty).filter(|path| ends_with(path, "ReplyTo"))?;
    let PathArguments::AngleBracketed(arguments) = &path.segments.last()?.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(reply)) if arguments.args.len() == 1 => Some(reply),
        _ => None,
    }
}

fn name(pattern: &Pat) -> syn::Result<&Ident> {
    match pattern {
        Pat::Ident(binding) if binding.by_ref.is_none() && binding.subpat.is_none() => {
            Ok(&binding.ident)
        }
        other => {
            let text = "an argument of a message names a field, so it is a name (`amount` or \
                        `mut amount`); take it apart within the method";
            Err(syn::Error::new_spanned(other, text))
        }
    }
}

fn path_of(ty: &Type) -> Option<&Path> {
    match bare(ty) {
        Type::Path(node) if node.qself.is_none() => Some(&node.path),
        _ => None,
    }
}

/// Strips the groups that a `macro_rules!` puts around a type that it was given.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

fn ends_with(path: &Path, name: &str) -> bool {
    path.segments
        .last()
        .is_some_and(|segment| segment.ident == name)
}
