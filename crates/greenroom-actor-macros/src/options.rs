//! Parsing of the options of `#[messages(..)]` and `#[message(..)]`.

use proc_macro2::{Ident, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, LitStr, Meta, Path, Token, parenthesized};

use crate::remote::{self, RemoteOptions};

/// The options of `#[messages(..)]`.
#[derive(Default)]
pub(crate) struct BlockOptions {
    /// The path of greenroom-actor.
    pub(crate) root: Option<Path>,
    pub(crate) trait_name: Option<Ident>,
    pub(crate) remote: RemoteOptions,
}

impl BlockOptions {
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("crate") {
                set(&mut options.root, &meta, path)
            } else if meta.path.is_ident("trait_name") {
                set(&mut options.trait_name, &meta, name)
            } else if meta.path.is_ident("remote") {
                set(&mut options.remote.name, &meta, remote::actor_name)
            } else if meta.path.is_ident("remote_trait_name") {
                set(&mut options.remote.trait_name, &meta, name)
            } else if meta.path.is_ident("cluster") {
                set(&mut options.remote.root, &meta, path)
            } else {
                Err(meta.error(
                    "unknown option; `#[messages]` takes `trait_name = Name`, \
                     `crate = path::of::greenroom_actor`, `remote = \"name.v1\"` and with it \
                     `remote_trait_name = Name` and `cluster = path::of::greenroom_cluster`",
                ))
            }
        });
        parser.parse2(tokens)?;
        options.remote.require_name()?;
        Ok(options)
    }
}

/// The options of `#[message(..)]`.
#[derive(Default)]
pub(crate) struct MessageOptions {
    /// The name of the message's struct.
    pub(crate) name: Option<Ident>,
    pub(crate) derives: Option<Vec<Path>>,
}

impl MessageOptions {
    pub(crate) fn parse(mark: &Attribute) -> syn::Result<Self> {
        let mut options = Self::default();
        if !matches!(mark.meta, Meta::Path(_)) {
            mark.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    set(&mut options.name, &meta, name)
                } else if meta.path.is_ident("derive") {
                    set(&mut options.derives, &meta, paths)
                } else {
                    Err(meta.error(
                        "unknown option; `#[message]` takes `name = Name` and \
                         `derive(Trait, ..)`",
                    ))
                }
            })?;
        }
        Ok(options)
    }
}

fn set<T>(
    option: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    parse: fn(&ParseNestedMeta<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    if option.is_some() {
        return Err(meta.error("this option is given twice; once is allowed"));
    }
    *option = Some(parse(meta)?);
    Ok(())
}

fn name(meta: &ParseNestedMeta<'_>) -> syn::Result<Ident> {
    unquoted(meta)?.parse()
}

fn path(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    unquoted(meta)?.call(Path::parse_mod_style)
}

fn unquoted<'a>(meta: &ParseNestedMeta<'a>) -> syn::Result<syn::parse::ParseStream<'a>> {
    let value = meta.value()?;
    if value.peek(LitStr) {
        return Err(value.error("a name and no string: write it without the quotes"));
    }
    Ok(value)
}

fn paths(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<Path>> {
    let content;
    parenthesized!(content in meta.input);
    let paths =
        Punctuated::<Path, Token![,]>::parse_terminated_with(&content, Path::parse_mod_style)?;
    Ok(paths.into_iter().collect())
}
