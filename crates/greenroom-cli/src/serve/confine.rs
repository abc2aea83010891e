//! Gives up privileges once the sockets are bound, before any code of an application runs.

use std::io;

use anyhow::Context;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

use crate::args::ProcessArgs;

/// Gives up capabilities, ways to more privileges and, if there are keys, dumps of the memory.
///
/// The first two are a thread's own, and go on to threads and programs that it starts. So this is
/// called while there is one.
pub(super) fn confine(args: &ProcessArgs, has_keys: bool) -> anyhow::Result<()> {
    if !geteuid().is_root() {
        drop_capabilities().context(
            "the capabilities cannot be given up: a filter of system calls has to allow capset",
        )?;
    }
    if !args.allow_new_privileges {
        set_no_new_privs(true).context("the system refuses PR_SET_NO_NEW_PRIVS")?;
    }
    if has_keys && !args.core_dumps {
        // Besides, no other process of the user may trace this one or read its memory. Programs
        // that it starts get the attribute back.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .context("the system refuses PR_SET_DUMPABLE")?;
    }
    Ok(())
}

/// Gives up what a service manager lent for binding, such as `CAP_NET_BIND_SERVICE`: the ambient
/// set would go on to applications. It ends with the permitted one.
fn drop_capabilities() -> io::Result<()> {
    let held = capabilities(None)?;
    if (held.permitted | held.inheritable).is_empty() {
        return Ok(());
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?)
}
